#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "updater/pipeline/message_view.h"

struct rd_kafka_message_s;

namespace fcap::updater {

/// Reads stretches of partitions, independently of the consumer that reads their ends. Never blocks
/// its caller.
///
/// Thread safety: one thread calls it.
class GapLog {
 public:
  struct GapMessage {
    Delivered what;
    const rd_kafka_message_s* whole = nullptr;  ///< Kafka's; null where there is no Kafka
  };
  /// Some of a stretch's messages, in order.
  struct Chunk {
    std::uint64_t ticket = 0;
    std::vector<GapMessage> messages = {};
    std::shared_ptr<void> owner = {};  ///< what the messages' views live in
    bool end = false;                  ///< the stretch has no more messages
    /// The log was found to begin there, behind where the stretch does: messages have expired.
    std::optional<std::int64_t> log_start = {};
    /// Why reading of the stretch has stopped; empty: it continues. The caller has to begin again.
    std::string failure = {};
  };

  /// Begins to read [from, to) of a partition that is not being read. Answers carry the ticket.
  virtual void read(std::uint64_t ticket, std::int32_t partition, std::int64_t from,
                    std::int64_t to) = 0;
  /// Stops reading a partition; chunks that are on their way may still arrive.
  virtual void stop(std::int32_t partition) = 0;
  /// The next chunk that has been read, if any; at most `messages_max` messages.
  virtual std::optional<Chunk> next_chunk(std::size_t messages_max) = 0;

 protected:
  ~GapLog() = default;
};

/// Takes the first `messages_max` messages out of a chunk that has more; nullopt: it has no more
/// than that. What the chunk says of its stretch's end stays with the rest.
[[nodiscard]] std::optional<GapLog::Chunk> take_part(GapLog::Chunk& chunk,
                                                     std::size_t messages_max);

}  // namespace fcap::updater
