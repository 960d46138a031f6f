#include "checker/async_read.h"

#include <new>
#include <utility>

#include "checker/core.h"

namespace fcap::checker {

void AsyncRead::prepare(Core& core) noexcept {
  core_ = &core;
  reason_ = Reason::kPassed;
  from_cache.reset();
  submitted.store(false, std::memory_order_relaxed);
  phase_.store(0, std::memory_order_relaxed);
  references_.store(1, std::memory_order_relaxed);
}

void AsyncRead::complete(const StoreOutcome& outcome) noexcept {
  const auto before = phase_.fetch_or(kTaken, std::memory_order_acq_rel);
  if ((before & kClaimed) == 0) {
    const bool inside_the_call = !submitted.load(std::memory_order_acquire);
    if (inside_the_call || core_->has_executor()) {
      reason_ = reason_of(outcome.code);
      try {
        record_.assign(outcome.record);
      } catch (const std::bad_alloc&) {
        reason_ = Reason::kOverloaded;
      }
      core_->hand_over(*this);
    } else if (claim()) {
      answer(reason_of(outcome.code), outcome.record);
    }
    leave();
  }
  drop_reference();
}

void AsyncRead::run() noexcept {
  if (claim()) answer(reason_, record_);
}

bool AsyncRead::claim() noexcept {
  return (phase_.fetch_or(kClaimed, std::memory_order_acq_rel) & kClaimed) == 0;
}

bool AsyncRead::claim_for_shutdown() noexcept {
  const auto before = phase_.fetch_or(kClaimed, std::memory_order_acq_rel);
  if ((before & kClaimed) != 0) return false;
  // complete() will find it claimed and keep its hands off.
  if ((before & kTaken) == 0) phase_.fetch_or(kLeft, std::memory_order_acq_rel);
  return true;
}

void AsyncRead::answer_shutdown() noexcept {
  answer(Reason::kShutdown, {});
}

void AsyncRead::skip_store(Reason why) noexcept {
  reason_ = why;
  record_.clear();
  phase_.store(kTaken | kLeft, std::memory_order_release);
}

void AsyncRead::answer(Reason reason, std::string_view record) noexcept {
  core_->answer(*this, reason, record);
  callback = nullptr;  // what it holds goes before anybody can think this check is over
  const auto before = phase_.fetch_or(kAnswered, std::memory_order_acq_rel);
  if ((before & kLeft) != 0) core_->forget(*this);
}

void AsyncRead::leave() noexcept {
  const auto before = phase_.fetch_or(kLeft, std::memory_order_acq_rel);
  if ((before & kAnswered) != 0) core_->forget(*this);
}

void AsyncRead::drop_reference() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  constexpr std::size_t kKeptRecordBytesMax = std::size_t{16} * 1024;
  if (record_.capacity() > kKeptRecordBytesMax) std::string().swap(record_);
  Pool<AsyncRead>::release(this);
}

}  // namespace fcap::checker
