#include "checker/pick_and_share.h"

#include <utility>
#include <vector>

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
    for (std::size_t i = 0; i < result.picked.size(); ++i) {
      const auto noted =
          judgement.note_shown(ask.user, ask.ranked[result.picked[i]], ask.event_ids[i], asked.now);
      if (noted) shown.push_back(*noted);
    }
    if (sharing.share(ask.user, shown, result.seen)) {
      for (const ledger::Entry& event : shown) judgement.mark_shared(ask.user, event);
    }
    return result;
  } catch (...) {  // no memory, or the host's clock threw
    none.reason = Reason::kOverloaded;
    return none;
  }
}

}  // namespace fcap::checker
