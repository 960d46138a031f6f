#include "checker/async_pick.h"

#include <algorithm>
#include <utility>

#include "ledger/ids.h"

namespace fcap::checker {
namespace {

std::vector<std::string> starts_of(std::span<const std::string_view> ids) {
  std::vector<std::string> starts;
  starts.reserve(ids.size());
  for (const std::string_view id : ids) starts.emplace_back(ledger::start_of(id));
  return starts;
}

}  // namespace

AsyncPick::AsyncPick(Judgement& judgement, SharedNoteWriter& sharing, const ReserveAsk& ask,
                     Callback&& callback)
    : judgement_(judgement),
      user_(ledger::start_of(ask.user)),
      at_(ask.now),
      event_ids_(starts_of(ask.event_ids)),
      event_id_views_(event_ids_.begin(), event_ids_.end()),
      page_(judgement, sharing, ask.event_ids.size()) {
  names_.reserve(ask.ranked.size());
  ranked_.reserve(ask.ranked.size());
  for (const Candidate& candidate : ask.ranked) {
    names_.push_back({std::string(ledger::start_of(candidate.campaign)),
                      std::string(ledger::start_of(candidate.creative))});
    const PickNames& names = names_.back();
    ranked_.push_back({names.campaign, names.creative});
  }
  picks_.picked.reserve(std::min(event_ids_.size(), ranked_.size()));
  callback_ = std::move(callback);
}

Reason AsyncPick::refuse_ids() const noexcept {
  return ask().has_valid_ids() ? Reason::kPassed : Reason::kInvalid;
}

bool AsyncPick::answer_without_record(const Question& question) {
  at_ = question.now;
  if (event_ids_.empty() || ranked_.empty()) return true;
  return judgement_.pick_without_record(question, event_ids_.size(), picks_);
}

void AsyncPick::answer(const Question& question, const ReadOutcome& outcome) {
  reason_ = judgement_.pick_by_record(question, event_ids_.size(), outcome, picks_);
}

void AsyncPick::refuse(Reason reason) noexcept {
  reason_ = reason;
  const bool asked = refuse_ids() == Reason::kPassed;
  judgement_.pick_refused(ranked_.size(), asked ? event_ids_.size() : 0, reason, picks_);
}

PagePicks AsyncPick::take_result() noexcept {
  return page_.share(ask(), at_,
                     {.picked = std::move(picks_.picked),
                      .reason = reason_,
                      .stale = picks_.stale,
                      .token = std::move(picks_.token)});
}

}  // namespace fcap::checker
