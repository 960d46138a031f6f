#pragma once

#include <cstdint>
#include <future>
#include <memory>

#include <fcap/status.h>

#include "kafka/groupless_consumer.h"
#include "updater/pipeline/gap_log.h"

namespace fcap::updater {

/// Reads gaps from Kafka with a consumer and a thread of its own. It joins no group: nothing is
/// committed, and no rebalance happens because of it.
class GapReader final : public GapLog {
 public:
  using Options = kafka::GrouplessConsumer::Options;
  /// Sets the consumer's defaults itself.
  static Result<std::unique_ptr<GapReader>> create(Options options);
  /// Does not wait long for Kafka; its thread ends by itself.
  ~GapReader();
  GapReader(const GapReader&) = delete;
  GapReader& operator=(const GapReader&) = delete;

  void read(std::uint64_t ticket, std::int32_t partition, std::int64_t from,
            std::int64_t to) override;
  void stop(std::int32_t partition) override;
  std::optional<Chunk> next_chunk(std::size_t messages_max) override;

 private:
  struct State;
  GapReader(std::shared_ptr<State> state, std::future<void> ended)
      : state_(std::move(state)), ended_(std::move(ended)) {}

  std::shared_ptr<State> state_;
  std::future<void> ended_;
};

}  // namespace fcap::updater
