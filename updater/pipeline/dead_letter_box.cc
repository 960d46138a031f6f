#include "updater/pipeline/dead_letter_box.h"

#include <algorithm>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

// How much of a letter that is too large a stub keeps: at first, and if even that is too large.
constexpr std::size_t kStubPayloadBytes = std::size_t{16} * 1024;
constexpr std::size_t kStubKeyBytes = 1024;
constexpr std::uint32_t kCutsMax = 2;

}  // namespace

std::size_t DeadLetter::weight_bytes() const noexcept {
  std::size_t bytes = payload.size() + key.size();
  for (const auto& [name, value] : headers) bytes += name.size() + value.size();
  return bytes;
}

void DeadLetter::cut(std::size_t payload_bytes_max, std::size_t key_bytes_max) {
  if (bytes_before_cut == 0) bytes_before_cut = std::max<std::size_t>(payload.size(), 1);
  if (payload.size() > payload_bytes_max) payload.resize(payload_bytes_max);
  if (key.size() > key_bytes_max) key.resize(key_bytes_max);
  payload.shrink_to_fit();
  key.shrink_to_fit();
  headers.clear();
}

DeadLetterBox::DeadLetterBox(DeadLetterSink* sink, const DeadLetterOptions& options,
                             Metrics& metrics, LogCallback log)
    : sink_(sink),
      options_(options),
      metrics_(&metrics),
      log_(std::move(log)),
      backoff_(options.backoff_min, options.backoff_max, base::seeded_jitter(options.jitter_seed)) {
}

DeadLetterBox::~DeadLetterBox() {
  std::unique_lock lock(mutex_);
  none_under_way_.wait(lock, [this] { return under_way_ == 0; });
}

void DeadLetterBox::HeldLetter::delivered(Delivery delivery, std::string_view text) noexcept {
  result = delivery;
  why.assign(text);
  // Notified under the lock: the destructor may run as soon as the lock is free.
  const std::lock_guard lock(box->mutex_);
  box->attempts_ended_.push_back(this);
  if (--box->under_way_ == 0) box->none_under_way_.notify_all();
}

void DeadLetterBox::put(DeadLetter letter, std::uint64_t generation) {
  bytes_ += letter.weight_bytes();
  HeldLetter& slot =
      *slots_.emplace_back(std::make_unique<HeldLetter>(*this, std::move(letter), generation));
  slot.index = slots_.size() - 1;
  ++first_attempts_;
  send(slot);
}

void DeadLetterBox::send(HeldLetter& slot) {
  ++slot.attempts;
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  if (sink_ != nullptr) {
    sink_->send(slot.letter, slot);
  } else {
    slot.delivered(Delivery::kDelivered, {});
  }
}

void DeadLetterBox::tick(Clock::time_point now, const Current& current,
                         std::vector<LetterPosition>& arrived) {
  ended_.clear();
  {
    const std::lock_guard lock(mutex_);
    ended_.swap(attempts_ended_);
  }
  for (HeldLetter* slot : ended_) {
    if (slot->attempts == 1) --first_attempts_;
    if (settle(*slot, now, current, arrived)) remove(*slot);
  }
  const auto due = std::partition(retries_.begin(), retries_.end(),
                                  [now](const HeldLetter* slot) { return slot->retry_at > now; });
  ended_.assign(due, retries_.end());
  retries_.erase(due, retries_.end());
  for (HeldLetter* slot : ended_) send(*slot);
  ended_.clear();

  if (some_failed_) find_waiting();
}

void DeadLetterBox::find_waiting() {
  waiting_.clear();
  for (const auto& slot : slots_) {
    if (slot->failures > 0) waiting_.insert(slot->letter.partition);
  }
  some_failed_ = !waiting_.empty();
}

bool DeadLetterBox::settle(HeldLetter& slot, Clock::time_point now, const Current& current,
                           std::vector<LetterPosition>& arrived) {
  if (slot.result == Delivery::kDelivered) {
    count_arrived(slot);
    arrived.push_back({slot.letter.partition, slot.generation, slot.letter.offset});
    return true;
  }
  metrics_->dead_letter_failures.add();
  if (!current(slot.letter.partition, slot.generation)) return true;
  if (slot.result == Delivery::kTooLarge && slot.cuts < kCutsMax) {
    bytes_ -= slot.letter.weight_bytes();
    const bool first = slot.cuts++ == 0;
    slot.letter.cut(first ? kStubPayloadBytes : 0, first ? kStubKeyBytes : 0);
    bytes_ += slot.letter.weight_bytes();
    slot.retry_at = now;
    retries_.push_back(&slot);
    return false;
  }
  failed(slot, now);
  return false;
}

void DeadLetterBox::failed(HeldLetter& slot, Clock::time_point now) {
  some_failed_ = true;
  slot.retry_at = now + backoff_.after(++slot.failures);
  retries_.push_back(&slot);
  trouble_ = fmt::format("partition {} waits for its dead letter of offset {}: {}",
                         slot.letter.partition, slot.letter.offset, slot.why);
  // The first few attempts, then each power of two: an outage of an hour fills no log.
  if (log_ && (slot.failures & (slot.failures - 1)) == 0) {
    log_(LogLevel::kWarning, fmt::format("{}; attempt {}", trouble_, slot.failures));
  }
}

void DeadLetterBox::count_arrived(const HeldLetter& slot) {
  metrics_->dead_letters.add();
  metrics_->rejected[static_cast<std::size_t>(slot.letter.reason)].add();
}

void DeadLetterBox::remove(const HeldLetter& slot) {
  bytes_ -= slot.letter.weight_bytes();
  const std::size_t index = slot.index;
  std::swap(slots_[index], slots_.back());
  slots_[index]->index = index;
  slots_.pop_back();
}

}  // namespace fcap::updater
