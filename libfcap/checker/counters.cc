#include "checker/counters.h"

namespace fcap::checker {

std::uint64_t Counters::add_shared(CheckerCounter counter, std::uint64_t amount) noexcept {
  std::size_t stripe = own_thread_slot();
  if (stripe == kNoSlot) stripe += current_stripe() % kSharedStripes;
  return cell(stripe, counter).fetch_add(amount, std::memory_order_seq_cst);
}

void count_result(Counters& counters, const CheckResult& result) noexcept {
  std::uint64_t allowed = 0;
  bool invalid = false;
  for (const Verdict& verdict : result.verdicts) {
    if (verdict.allowed) ++allowed;
    invalid = invalid || verdict.reason == Reason::kInvalid;
  }
  counters.add(CheckerCounter::candidates, result.verdicts.size());
  counters.add(CheckerCounter::allowed, allowed);
  counters.add_unjudged(result.reason);
  if (invalid && result.reason != Reason::kInvalid) counters.add_unjudged(Reason::kInvalid);
}

void count_read(Counters& counters, StoreCode code, bool stale) noexcept {
  if (code == StoreCode::kOk) counters.add(CheckerCounter::records_found);
  if (code == StoreCode::kNotFound) counters.add(CheckerCounter::records_missing);
  if (code == StoreCode::kServerError) counters.add(CheckerCounter::server_errors);
  if (stale) counters.add(CheckerCounter::stale_reads);
}

}  // namespace fcap::checker
