#include "updater/pipeline/rejection_watch.h"

#include <algorithm>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

constexpr std::chrono::seconds kLineEvery{60};

}  // namespace

RejectionWatch::MessageCounts& RejectionWatch::slot(Clock::time_point now) {
  const std::int64_t number = now.time_since_epoch() / kSlotLength;
  const auto count = static_cast<std::int64_t>(kSlots);
  // Slots for times without messages are empty.
  for (std::int64_t i = std::max(newest_ + 1, number - count + 1); i <= number; ++i) {
    slots_[static_cast<std::size_t>(i % count)] = {};
  }
  newest_ = std::max(newest_, number);
  return slots_[static_cast<std::size_t>(newest_ % count)];
}

void RejectionWatch::rejected(const kafka::PartitionOffset& at, const events::Rejected& why,
                              Clock::time_point now) {
  ++slot(now).rejected;
  ReasonLines& reason = reasons_.at(static_cast<std::size_t>(why.reason));
  if (reason.written && now - *reason.written < kLineEvery) {
    ++reason.left_out;
    return;
  }
  sample_ = fmt::format("partition {}, offset {}: rejected as {}", at.partition, at.offset,
                        events::to_string(why.reason));
  if (!why.member.empty()) sample_ += fmt::format(" (member {})", why.member);
  std::string line = sample_;
  if (reason.left_out > 0) {
    line += fmt::format("; {} more for this reason since the last such line", reason.left_out);
  }
  reason = {now, 0};
  if (log_) log_(LogLevel::kWarning, line);
}

void RejectionWatch::taken(std::uint64_t messages, Clock::time_point now) {
  slot(now).messages += messages;
}

std::string RejectionWatch::trouble(Clock::time_point now) {
  slot(now);
  MessageCounts sum;
  for (const MessageCounts& each : slots_) {
    sum.messages += each.messages;
    sum.rejected += each.rejected;
  }
  if (sum.messages < options_.messages_min) return {};
  if (static_cast<double>(sum.rejected) <= options_.share_max * static_cast<double>(sum.messages)) {
    return {};
  }
  return fmt::format(
      "nearly all messages are rejected ({} of {} in the last minute, above "
      "pipeline.rejected_share_max): has a producer changed its format? Such as {}",
      sum.rejected, sum.messages, sample_);
}

}  // namespace fcap::updater
