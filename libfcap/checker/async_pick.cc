#include "checker/async_pick.h"

#include <algorithm>
#include <utility>

#include "checker/pick_and_share.h"

namespace fcap::checker {

AsyncPick::AsyncPick(Judgement& judgement, Sharing& sharing, const ReserveAsk& ask,
                     std::optional<Instant> at, Callback&& callback)
    : judgement_(judgement),
      sharing_(sharing),
      user_(ask.user),
      at_(at),
      event_ids_(ask.event_ids.begin(), ask.event_ids.end()),
      event_id_views_(event_ids_.begin(), event_ids_.end()) {
  names_.reserve(ask.ranked.size());
  ranked_.reserve(ask.ranked.size());
  for (const Candidate& candidate : ask.ranked) {
    names_.push_back({std::string(candidate.campaign), std::string(candidate.creative)});
    const Names& names = names_.back();
    ranked_.push_back({names.campaign, names.creative});
  }
  shown_.reserve(event_ids_.size());
  picks_.picked.reserve(std::min(event_ids_.size(), ranked_.size()));
  callback_ = std::move(callback);
}

Reason AsyncPick::refuse_ids() const noexcept {
  return ask().has_valid_ids() ? Reason::kPassed : Reason::kInvalid;
}

bool AsyncPick::answer_unread(const Question& question) {
  at_ = question.now;
  if (event_ids_.empty() || ranked_.empty()) return true;
  return judgement_.pick_unread(question, event_ids_.size(), picks_);
}

void AsyncPick::answer(const Question& question, const ReadOutcome& outcome) {
  reason_ = judgement_.pick_by_record(question, event_ids_.size(), outcome, picks_);
}

void AsyncPick::refuse(Reason reason) noexcept {
  reason_ = reason;
  const bool asked = refuse_ids() == Reason::kPassed;
  judgement_.pick_refused(ranked_.size(), asked ? event_ids_.size() : 0, reason, picks_);
}

PickResult AsyncPick::take_result() noexcept {
  PickResult result{.picked = std::move(picks_.picked),
                    .reason = reason_,
                    .stale = picks_.stale,
                    .seen = picks_.seen};
  share_picks(judgement_, sharing_, ask(), at_, result, shown_);
  return result;
}

}  // namespace fcap::checker
