#include "checker/shared_page.h"

#include <utility>

#include "checker/seen_record.h"

namespace fcap::checker {
namespace {

// A check's reason as a page's.
Reason reason_of_page(const ReserveAsk& ask, const PickResult& picked) noexcept {
  if (picked.reason != Reason::kPassed) return picked.reason;
  if (ask.event_ids.empty()) return Reason::kRepeated;
  return picked.picked.empty() ? Reason::kCapped : Reason::kDone;
}

}  // namespace

SharedPage::SharedPage(Judgement& judgement, SharedNoteWriter& sharing, std::size_t slot_count)
    : judgement_(judgement), sharing_(sharing) {
  shown_.reserve(slot_count);
  page_.picks.resize(slot_count);
}

PagePicks SharedPage::share(const ReserveAsk& ask, std::optional<Instant> at,
                            const PickResult& picked) noexcept {
  for (std::size_t i = 0; i < picked.picked.size(); ++i) {
    const auto noted = judgement_.note_shown({.subject = ask.user,
                                              .candidate = ask.ranked[picked.picked[i]],
                                              .event_id = ask.event_ids[i],
                                              .at = at});
    if (noted) shown_.push_back(*noted);
    PagePicks::Pick& pick = page_.picks[i];
    pick.candidate = picked.picked[i];
    if (noted || at) pick.time = noted ? noted->time : *at;
  }
  page_.reason = reason_of_page(ask, picked);
  page_.stale = picked.stale;
  if (sharing_.share(ask.user, shown_, SeenRecord::of(picked.token))) {
    for (const ledger::Entry& event : shown_) judgement_.mark_shared(ask.user, event);
  }
  return std::move(page_);
}

}  // namespace fcap::checker
