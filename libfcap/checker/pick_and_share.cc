#include "checker/pick_and_share.h"

#include <memory>
#include <utility>

#include "checker/async_pick.h"

namespace fcap::checker {

// Of a page that is not judged at all: nothing is picked.
PickResult PickAndShare::refused(Reason reason) noexcept {
  parts_.counters.add(Counter::checks);
  count_reason(parts_.counters, reason);
  parts_.counters.add(Counter::checks_answered);
  PickResult none;
  none.reason = reason;
  return none;
}

PickResult PickAndShare::pick(const ReserveAsk& ask, const CheckOptions& options) noexcept {
  // Until the picks are shared, which is after the check has ended.
  CallInside inside(parts_.counters);
  inside.submitted();
  if (!ask.has_valid_ids()) return refused(Reason::kInvalid);
  std::vector<ledger::Entry> shown;
  try {
    shown.reserve(ask.event_ids.size());
  } catch (...) {  // no memory
    return refused(Reason::kOverloaded);
  }
  CheckOptions asked = options;
  try {
    asked.now = parts_.judgement.instant_of(options);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the host's clock; the check says so
  }
  PickResult result = blocking_.first_allowed(ask.user, ask.ranked, ask.event_ids.size(), asked);
  share_picks(parts_.judgement, sharing_, ask, asked.now, result, shown);
  return result;
}

void PickAndShare::start(const ReserveAsk& ask, const CheckOptions& options,
                         Checker::PickCallback callback) noexcept {
  CallInside inside(parts_.counters);
  inside.submitted();
  std::unique_ptr<AsyncPick> pick;
  try {
    pick = std::make_unique<AsyncPick>(parts_.judgement, sharing_, ask, options.now,
                                       std::move(callback));
  } catch (...) {  // no memory
    PickResult none = refused(Reason::kOverloaded);
    return async_.call_back([&] {
      if (callback) callback(std::move(none));
    });
  }
  async_.pick_async(std::move(pick), ask, options);
}

void share_picks(Judgement& judgement, Sharing& sharing, const ReserveAsk& ask,
                 std::optional<Instant> at, const PickResult& picks,
                 std::vector<ledger::Entry>& shown) noexcept {
  for (std::size_t i = 0; i < picks.picked.size(); ++i) {
    const Candidate& candidate = ask.ranked[picks.picked[i]];
    const auto noted = judgement.note_shown(ask.user, candidate, ask.event_ids[i], at);
    if (noted) shown.push_back(*noted);
  }
  if (!sharing.share(ask.user, shown, picks.seen)) return;
  for (const ledger::Entry& event : shown) judgement.mark_shared(ask.user, event);
}

}  // namespace fcap::checker
