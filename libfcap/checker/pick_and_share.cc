#include "checker/pick_and_share.h"

#include <utility>

namespace fcap::checker {

PickResult pick_and_share(Blocking& blocking, Judgement& judgement, Sharing& sharing,
                          const ReserveAsk& ask, const CheckOptions& options) noexcept {
  PickResult none;
  none.reason = Reason::kInvalid;
  if (!ask.has_valid_ids()) return none;
  try {
    CheckOptions asked = options;
    asked.now = judgement.instant_of(options);
    std::vector<ledger::Entry> shown;
    shown.reserve(ask.event_ids.size());
    PickResult result = blocking.first_allowed(ask.user, ask.ranked, ask.event_ids.size(), asked);
    share_picks(judgement, sharing, ask, *asked.now, result, shown);
    return result;
  } catch (...) {  // no memory, or the host's clock threw
    none.reason = Reason::kOverloaded;
    return none;
  }
}

void share_picks(Judgement& judgement, Sharing& sharing, const ReserveAsk& ask, Instant at,
                 const PickResult& picks, std::vector<ledger::Entry>& shown) noexcept {
  for (std::size_t i = 0; i < picks.picked.size(); ++i) {
    const Candidate& candidate = ask.ranked[picks.picked[i]];
    const auto noted = judgement.note_shown(ask.user, candidate, ask.event_ids[i], at);
    if (noted) shown.push_back(*noted);
  }
  if (!sharing.share(ask.user, shown, picks.seen)) return;
  for (const ledger::Entry& event : shown) judgement.mark_shared(ask.user, event);
}

}  // namespace fcap::checker
