#include "redis/breaker.h"

#include <algorithm>
#include <utility>

namespace fcap::redis {

Breaker::Breaker(const Options& options, base::Jitter jitter)
    : failure_share_(options.failure_share),
      failures_max_(options.failures),
      backoff_(options.backoff_min, options.backoff_max, std::move(jitter)) {}

void Breaker::on_success(std::size_t count, TimePoint now) noexcept {
  failures_ = 0;
  slice_at(now).successes += count;
  // Most requests to a slow server fail, but not all: a single answer proves nothing then.
  if (opened_by_share_) {
    if (state_ != State::kClosed || now < settled_at_) return;
    opened_by_share_ = false;
  }
  state_ = State::kClosed;
  backoff_.reset();
}

void Breaker::on_failures(std::size_t count, TimePoint now) {
  if (failures_max_ == 0 || count == 0) return;
  failures_ = count > failures_max_ - failures_ ? failures_max_ : failures_ + count;
  Slice& slice = slice_at(now);
  slice.failures += std::min(count, failures_max_);
  if (state_ != State::kClosed) return;
  if (failures_ >= failures_max_) {
    open(now);
  } else if (share_too_large(now)) {
    opened_by_share_ = true;
    open(now);
  }
}

Breaker::Slice& Breaker::slice_at(TimePoint now) noexcept {
  const std::int64_t number = now.time_since_epoch() / kSlice;
  Slice& slice = slices_[static_cast<std::size_t>(number) % kSlices];
  if (slice.number != number) slice = {number, 0, 0};
  return slice;
}

bool Breaker::share_too_large(TimePoint now) const noexcept {
  if (failure_share_ <= 0) return false;
  const std::int64_t oldest =
      now.time_since_epoch() / kSlice - static_cast<std::int64_t>(kSlices) + 1;
  std::size_t failures = 0;
  std::size_t successes = 0;
  for (const Slice& slice : slices_) {
    if (slice.number < oldest) continue;
    failures += slice.failures;
    successes += slice.successes;
  }
  return failures >= failures_max_ &&
         static_cast<double>(failures) >=
             failure_share_ * static_cast<double>(failures + successes);
}

bool Breaker::probe_due(TimePoint now) const noexcept {
  return state_ == State::kOpen && now >= probe_at_;
}

void Breaker::on_probe_sent() noexcept {
  if (state_ == State::kOpen) state_ = State::kProbing;
}

void Breaker::on_probe_success(TimePoint now) noexcept {
  if (state_ != State::kClosed) {
    slices_ = {};
    settled_at_ = now + kSlice * static_cast<int>(kSlices);
  }
  failures_ = 0;
  state_ = State::kClosed;
}

void Breaker::on_probe_failure(TimePoint now) {
  if (state_ == State::kProbing) open(now);
}

Breaker::TimePoint Breaker::probe_at() const noexcept {
  return state_ == State::kOpen ? probe_at_ : TimePoint::max();
}

void Breaker::open(TimePoint now) {
  state_ = State::kOpen;
  probe_at_ = now + backoff_.next();
}

}  // namespace fcap::redis
