#include "checker/async_pick.h"

#include <algorithm>
#include <utility>

#include "checker/pick_and_share.h"
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

AsyncPick::AsyncPick(Judgement& judgement, Sharing& sharing, const ReserveAsk& ask,
                     std::optional<Instant> at, Callback&& callback)
    : judgement_(judgement),
      sharing_(sharing),
      user_(ledger::start_of(ask.user)),
      at_(at),
      event_ids_(starts_of(ask.event_ids)),
      event_id_views_(event_ids_.begin(), event_ids_.end()) {
  names_.reserve(ask.ranked.size());
  ranked_.reserve(ask.ranked.size());
  for (const Candidate& candidate : ask.ranked) {
    names_.push_back({std::string(ledger::start_of(candidate.campaign)),
                      std::string(ledger::start_of(candidate.creative))});
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
