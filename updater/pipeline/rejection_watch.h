#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/log.h>

#include "events/event_decoder.h"
#include "kafka/partition_lists.h"

namespace fcap::updater {

struct RejectionWatchOptions {
  /// More than this share of the last minute's messages rejected is trouble; 1: never.
  double share_max = 0.9;
  /// Fewer messages in that minute say nothing.
  std::uint64_t messages_min = 100;
};

/// Notices when nearly all messages are rejected, as when a producer has changed its format: they
/// are counted and set aside in order, so nothing else would look wrong. Also writes a line for a
/// rejected message of each reason, at most one per minute, that says where it stands.
///
/// Thread safety: one thread.
class RejectionWatch {
 public:
  using Clock = std::chrono::steady_clock;

  RejectionWatch(RejectionWatchOptions options, LogCallback log)
      : options_(options), log_(std::move(log)) {}

  void rejected(const kafka::PartitionOffset& at, const events::Rejected& why,
                Clock::time_point now);
  /// So many messages were read, those that were rejected included.
  void taken(std::uint64_t messages, Clock::time_point now);

  /// A line for /readyz; empty while too few are rejected.
  [[nodiscard]] std::string trouble(Clock::time_point now);

 private:
  static constexpr std::chrono::seconds kSlotLength{10};
  static constexpr std::size_t kSlots = 6;
  struct MessageCounts {
    std::uint64_t messages = 0;
    std::uint64_t rejected = 0;
  };
  struct ReasonLines {
    std::optional<Clock::time_point> written;
    std::uint64_t left_out = 0;
  };

  MessageCounts& slot(Clock::time_point now);

  const RejectionWatchOptions options_;
  const LogCallback log_;
  std::array<MessageCounts, kSlots> slots_{};
  std::int64_t newest_ = 0;  // the number of the slot that was used last
  std::array<ReasonLines, events::kRejections> reasons_{};
  std::string sample_;
};

}  // namespace fcap::updater
