#include "checker/pick_and_share.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/caller_state.h"

namespace fcap::checker {

// Of a page that is not judged at all. Nothing is picked where its ids are invalid, or where there
// is no room for the picks.
PickResult PickAndShare::refused(const ReserveAsk& ask, const CheckOptions& options,
                                 Reason reason) noexcept {
  const std::size_t slots = ask.has_valid_ids() ? ask.event_ids.size() : 0;
  Picks picks;
  try {
    picks.picked.reserve(std::min(slots, ask.ranked.size()));
    parts_.judgement.pick_refused(ask.ranked.size(), slots, reason, picks);
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory
  }
  parts_.counters.add(Counter::checks);
  parts_.counters.add(Counter::candidates, picks.judged);
  parts_.counters.add(Counter::allowed, picks.picked.size());
  count_reason(parts_.counters, reason);
  parts_.counters.add(Counter::checks_answered);
  PickResult result{.picked = std::move(picks.picked), .reason = reason};
  std::vector<ledger::Entry> shown;
  share_picks(parts_.judgement, sharing_, ask, options.now, result, shown);
  return result;
}

PickResult PickAndShare::pick(const ReserveAsk& ask, const CheckOptions& options) noexcept {
  // Until the picks are shared, which is after the check has ended.
  const base::CallerState caller;
  CallInside inside(parts_.counters);
  inside.submitted();
  if (!ask.has_valid_ids()) return refused(ask, options, Reason::kInvalid);
  std::vector<ledger::Entry> shown;
  try {
    shown.reserve(ask.event_ids.size());
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory; what is picked is not shared
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

Async::HeldRead PickAndShare::begin(const ReserveAsk& ask, const CheckOptions& options,
                                    AsyncPick::Callback callback) noexcept {
  CallInside inside(parts_.counters);
  inside.submitted();
  std::unique_ptr<AsyncPick> pick;
  try {
    pick = std::make_unique<AsyncPick>(parts_.judgement, sharing_, ask, options.now,
                                       std::move(callback));
  } catch (...) {  // no memory
    async_.give(callback, refused(ask, options, Reason::kOverloaded));
    return nullptr;
  }
  return async_.pick_async(std::move(pick), ask, options);
}

std::vector<PickResult> PickAndShare::batch(std::span<const PageRequest> pages,
                                            const CheckOptions& options) noexcept {
  // Between two pages too, and while what is missing is cut off.
  CallInside inside(parts_.counters);
  inside.submitted();
  const auto start = [&](std::size_t i, const BatchSlot<PickResult>& slot) {
    const PageRequest& page = pages[i];
    return begin({.user = page.user, .ranked = page.ranked, .event_ids = page.event_ids}, options,
                 slot);
  };
  const auto cut_off = [this](const Async::HeldRead& read) {
    if (read) async_.cut_off(*read);
  };
  auto results =
      answer_all<PickResult>(pages.size(), parts_.judgement.deadline_of(options), start, cut_off);
  if (results.size() < pages.size()) {
    parts_.counters.add(Counter::checks, pages.size());
    parts_.counters.add(Counter::overloaded, pages.size());
    parts_.counters.add(Counter::checks_answered, pages.size());
  }
  return results;
}

void share_picks(Judgement& judgement, Sharing& sharing, const ReserveAsk& ask,
                 std::optional<Instant> at, const PickResult& picks,
                 std::vector<ledger::Entry>& shown) noexcept {
  for (std::size_t i = 0; i < picks.picked.size(); ++i) {
    const Candidate& candidate = ask.ranked[picks.picked[i]];
    const auto noted = judgement.note_shown(ask.user, candidate, ask.event_ids[i], at);
    if (noted && shown.size() < shown.capacity()) shown.push_back(*noted);
  }
  if (!sharing.share(ask.user, shown, picks.seen)) return;
  for (const ledger::Entry& event : shown) judgement.mark_shared(ask.user, event);
}

}  // namespace fcap::checker
