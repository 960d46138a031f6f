// What a Checker remembers by itself: impressions just shown, and caps that are certain.
#include <algorithm>
#include <utility>

#include "checker/core.h"
#include "ledger/ids.h"

namespace fcap::checker {
namespace {

// Cached caps are for the instants that hosts ask about, so that differences never overflow.
constexpr Instant kCacheFrom = instant_from_ms(0);
constexpr Instant kCacheUntil = instant_from_ms(std::int64_t{1} << 59);

}  // namespace

bool Core::note_shown(std::string_view user, const Candidate& shown, std::string_view event_id,
                      std::optional<Instant> at) noexcept {
  if (shown_ == nullptr || fork_guard_.in_child()) return false;
  if (user.empty() || user.size() > ledger::kIdBytesMax || null_user_ids_.contains(user)) {
    return false;
  }
  if (event_id.empty() || event_id.size() > ledger::kIdBytesMax || shown.campaign.empty() ||
      shown.campaign.size() > ledger::kIdBytesMax || shown.creative.size() > ledger::kIdBytesMax) {
    return false;
  }
  try {
    const rules::CandidateKey key = rules::candidate_key(shown);
    const std::size_t displaced = shown_->note(user,
                                               {.time = at ? *at : instant_of({}),
                                                .campaign = key.campaign,
                                                .creative = key.creative,
                                                .type = EventType::kImpression,
                                                .fingerprint = ledger::fingerprint(event_id)},
                                               Clock::now());
    counters_.add(Counter::kShownNoted);
    counters_.add(Counter::kShownDisplaced, displaced);
    return true;
  } catch (...) {
    return false;
  }
}

void Core::add_shown(Scratch& scratch, std::string_view user) {
  scratch.unconfirmed = 0;
  if (shown_ == nullptr) return;
  const ShownEvents::Merged merged = shown_->merge_into(user, Clock::now(), scratch.ledger);
  scratch.unconfirmed = merged.unconfirmed;
  counters_.add(Counter::kShownConfirmed, merged.confirmed);
}

/// Whether every candidate is capped for certain; `result` then has the verdicts.
bool Core::answer_from_cache(std::string_view user, std::span<const Candidate> candidates,
                             Instant now, const CheckOptions& options, CheckResult& result) {
  if (cache_ == nullptr || candidates.empty()) return false;
  const Pooled<Scratch> scratch(*scratches_);
  current_rules_.refresh(scratch->held);
  if (scratch->held.rules == nullptr) return false;
  hash_candidates(candidates, scratch->candidates);
  const auto subject = cache_->subject(user, options.segments, scratch->held.generation);
  const Clock::time_point clock_now = Clock::now();
  result.verdicts.clear();
  for (const rules::CandidateKey& candidate : scratch->candidates) {
    const auto verdict = cache_->find(subject, candidate, now, clock_now);
    if (!verdict) {
      result.verdicts.clear();
      return false;
    }
    result.verdicts.push_back(*verdict);
  }
  result.rules = scratch->held.rules;
  counters_.add(Counter::kCachedChecks);
  counters_.add(Counter::kCachedVerdicts, result.verdicts.size());
  return true;
}

/// After judging by a record: only what it confirms, not what this process believes.
void Core::keep_caps(const Scratch& scratch, const Asked& asked,
                     const CheckResult& result) noexcept {
  if (cache_ == nullptr || scratch.unconfirmed > 0) return;
  if (asked.now < kCacheFrom || asked.now > kCacheUntil) return;
  const auto subject = cache_->subject(asked.user, asked.segments, scratch.held.generation);
  const Clock::time_point clock_now = Clock::now();
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    if (result.verdicts[i].reason != Reason::kCapped) continue;
    if (const auto capped = scratch.evaluator.capped_until(i)) {
      cache_->put(subject, asked.candidates[i], asked.now, *capped, clock_now);
    }
  }
}

/// Where the history could not be had: what is capped for certain stays capped.
void Core::put_cached_caps(Scratch& scratch, const Asked& asked, CheckResult& result) {
  if (cache_ == nullptr || result.reason == Reason::kShutdown) return;
  current_rules_.refresh(scratch.held);
  if (scratch.held.rules == nullptr) return;
  const auto subject = cache_->subject(asked.user, asked.segments, scratch.held.generation);
  const Clock::time_point clock_now = Clock::now();
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    const auto verdict = cache_->find(subject, asked.candidates[i], asked.now, clock_now);
    if (!verdict) continue;
    result.verdicts[i] = *verdict;
    ++found;
  }
  if (found == 0) return;
  result.rules = scratch.held.rules;
  counters_.add(Counter::kCachedVerdicts, found);
}

}  // namespace fcap::checker
