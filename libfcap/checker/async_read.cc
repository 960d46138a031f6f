#include "checker/async_read.h"

#include <algorithm>
#include <new>
#include <utility>

#include "checker/callback_checks.h"
#include "ledger/ids.h"

namespace fcap::checker {

void AsyncRead::prepare(CallbackChecks& owner, bool in_batch) noexcept {
  owner_ = &owner;
  in_batch_ = in_batch;
  by_executor_ = !in_batch && owner.has_executor();
  reason = Reason::kPassed;
  answered = stale = found = false;
  result.verdicts.clear();
  result.rules = nullptr;
  phase_.store(0, std::memory_order_relaxed);
  references_.store(1, std::memory_order_relaxed);
}

void AsyncRead::complete(const StoreOutcome& outcome) noexcept {
  // The CallbackChecks may be gone, so none of its members is read before the claim.
  if (!by_executor_ && (phase_.load(std::memory_order_acquire) & kSubmitted) != 0) {
    // The usual case, in one step instead of three. Nobody else answers what is claimed here, so
    // that end() may take kLeft for granted.
    const auto before = phase_.fetch_or(kTaken | kClaimed | kLeft, std::memory_order_acq_rel);
    if ((before & kClaimed) == 0) {
      owner_->note_outcome(*this, outcome);
      owner_->answer(*this, read_outcome(outcome));
    }
  } else {
    complete_early(outcome);
  }
  drop_reference();
}

void AsyncRead::complete_early(const StoreOutcome& outcome) noexcept {
  const auto before = phase_.fetch_or(kTaken, std::memory_order_acq_rel);
  if ((before & kClaimed) == 0) {
    owner_->note_outcome(*this, outcome);
    // If the call that asked has not returned from the store yet, this may run on its own stack. A
    // callback here would run inside the store's call, whose locks it may need. So the outcome is
    // kept, and the caller answers by it after it has left the store.
    bool mine = (before & kSubmitted) != 0;
    if (!mine || by_executor_) {
      keep(outcome);
      mine = mine || (phase_.fetch_or(kKept, std::memory_order_acq_rel) & kSubmitted) != 0;
      if (mine && by_executor_) {
        owner_->hand_over(*this);
      } else if (mine) {
        run();
      }
    } else if (claim()) {
      owner_->answer(*this, read_outcome(outcome));
    }
    leave();
  }
}

void AsyncRead::keep(std::span<const std::string_view> asked) {
  segments.assign(asked.begin(), asked.end());
  segment_views.assign(segments.begin(), segments.end());
}

void AsyncRead::keep(const StoreOutcome& outcome) noexcept {
  reason = reason_of(outcome.code);
  stale = outcome.stale;
  found = outcome.code == StoreCode::kOk;
  try {
    record.assign(outcome.record);
  } catch (const std::bad_alloc&) {
    reason = Reason::kOverloaded;
  }
}

bool AsyncRead::leave_submit() noexcept {
  return (phase_.fetch_or(kSubmitted, std::memory_order_acq_rel) & kKept) != 0;
}

void AsyncRead::run() noexcept {
  if (claim()) owner_->answer(*this, kept_outcome());
}

bool AsyncRead::claim() noexcept {
  return (phase_.fetch_or(kClaimed, std::memory_order_acq_rel) & kClaimed) == 0;
}

bool AsyncRead::claim_early() noexcept {
  const auto before = phase_.fetch_or(kClaimed, std::memory_order_acq_rel);
  if ((before & kClaimed) != 0) return false;
  // complete() will find the read claimed and not touch the CallbackChecks, so end() need not wait
  // for it.
  if ((before & kTaken) == 0) phase_.fetch_or(kLeft, std::memory_order_acq_rel);
  return true;
}

void AsyncRead::skip_store() noexcept {
  phase_.store(kTaken | kLeft | kSubmitted, std::memory_order_release);
}

void AsyncRead::end() noexcept {
  // What they hold goes before anybody can think this check is over.
  callback = nullptr;
  pick = nullptr;
  const auto before = phase_.fetch_or(kEnded, std::memory_order_acq_rel);
  // Ended twice, it would leave the list of pending ones twice, and another check with it.
  if ((before & kEnded) != 0) return;
  if ((before & kLeft) != 0) owner_->forget(*this);
}

void AsyncRead::leave() noexcept {
  const auto before = phase_.fetch_or(kLeft, std::memory_order_acq_rel);
  if ((before & kEnded) != 0) owner_->forget(*this);
}

bool AsyncRead::cancel() noexcept {
  if (!claim_early()) return false;
  // In a child, the lock of the list may be held by a thread that is not there.
  if (owner_->in_child()) return true;
  owner_->note_canceled();
  end();
  return true;
}

void AsyncRead::drop_reference() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  constexpr std::size_t kKeptRecordBytesMax = std::size_t{16} * 1024;
  if (record.capacity() > kKeptRecordBytesMax) std::string().swap(record);
  constexpr std::size_t kKeptVerdictsMax = 256;
  if (spare.capacity() > kKeptVerdictsMax) std::vector<Verdict>().swap(spare);
  constexpr std::size_t kKeptSegmentsMax = 64;
  const auto is_long = [](const std::string& name) {
    return name.capacity() > ledger::kIdBytesMax;
  };
  if (segments.capacity() > kKeptSegmentsMax ||
      std::any_of(segments.begin(), segments.end(), is_long)) {
    std::vector<std::string>().swap(segments);
    std::vector<std::string_view>().swap(segment_views);
  }
  Pool<AsyncRead>::release(this);
}

}  // namespace fcap::checker
