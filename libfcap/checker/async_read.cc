#include "checker/async_read.h"

#include <algorithm>
#include <new>
#include <utility>

#include "ledger/ids.h"

namespace fcap::checker {

void AsyncRead::prepare(ReadOwner& owner, Answerer answerer) noexcept {
  owner_ = &owner;
  answerer_ = answerer;
  reason = Reason::kPassed;
  answered = stale = found = false;
  result.verdicts.clear();
  result.rules = nullptr;
  state.reset();
  references_.store(1, std::memory_order_relaxed);
}

void AsyncRead::complete(const StoreOutcome& outcome) noexcept {
  const bool by_executor = answerer_ == Answerer::kExecutor;
  const ReadState::ReadArrival arrival = state.arrive(by_executor);
  if (arrival == ReadState::ReadArrival::kTooLate) return drop_reference();
  owner_->note_outcome(*this, outcome);
  if (arrival == ReadState::ReadArrival::kAnswer) {
    owner_->answer(*this, read_outcome(outcome));
    return drop_reference();
  }
  // While the call that asked is still under way, this may be its very stack: then it deals with
  // the outcome when it has left the store, outside all of the store's calls.
  keep(outcome);
  if (state.kept()) by_executor ? owner_->hand_over(*this) : run();
  if (state.leave()) owner_->forget(*this);
  drop_reference();
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

void AsyncRead::run() noexcept {
  if (state.claim()) owner_->answer(*this, kept_outcome());
}

bool AsyncRead::cancel() noexcept {
  if (!state.claim()) return false;
  owner_->drop_canceled(*this);
  return true;
}

void AsyncRead::drop_callback() noexcept {
  callback = nullptr;
  pick = nullptr;
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
