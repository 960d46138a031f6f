#include "redis/breaker.h"

#include <utility>

namespace fcap::redis {

Breaker::Breaker(const Options& options, Jitter jitter)
    : failures_max_(options.failures),
      backoff_(options.backoff_min, options.backoff_max, std::move(jitter)) {}

void Breaker::on_success() noexcept {
  failures_ = 0;
  state_ = State::kClosed;
  backoff_.reset();
}

void Breaker::on_failures(std::size_t count, TimePoint now) {
  if (failures_max_ == 0 || count == 0) return;
  failures_ = count > failures_max_ - failures_ ? failures_max_ : failures_ + count;
  if (state_ == State::kClosed && failures_ >= failures_max_) open(now);
}

bool Breaker::probe_due(TimePoint now) const noexcept {
  return state_ == State::kOpen && now >= probe_at_;
}

void Breaker::on_probe_sent() noexcept {
  if (state_ == State::kOpen) state_ = State::kProbing;
}

void Breaker::on_probe_success() noexcept {
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
