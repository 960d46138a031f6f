#include "checker/judgement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "base/clock.h"
#include "checker/parts.h"
#include "checker/seen_record.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"
#include "rules/reservation_state.h"

namespace fcap::checker {
namespace {

// Caps are kept only for instants in this range, so that differences of instants never overflow.
constexpr Instant kCacheFrom = instant_from_ms(0);
constexpr Instant kCacheUntil = instant_from_ms(std::int64_t{1} << 59);
constexpr std::chrono::seconds kDeadlineMax{60};

// A cached verdict does not record how far back its count reaches.
void doubt_kept(const Question& question, Verdict& verdict) noexcept {
  if (!question.completeness.covers_unknown(verdict.limit)) verdict.complete = false;
}

SeenRecord seen_of(const ledger::Ledger& ledger, std::size_t record_bytes, Instant now) noexcept {
  SeenRecord seen{.known = true, .bytes = static_cast<std::uint32_t>(record_bytes)};
  if (!ledger.reservations().empty()) {
    seen.reservations = static_cast<std::uint32_t>(rules::live_reservations(ledger, now));
  }
  return seen;
}

std::shared_ptr<const KeptRecord> kept_record(const Question& question,
                                              const ReadOutcome& outcome) {
  auto kept = std::make_shared<KeptRecord>();
  kept->user = question.user;
  if (outcome.found) kept->bytes.emplace(outcome.record);
  return kept;
}

}  // namespace

Judgement::Judgement(const CheckerOptions& options, const Gate& gate,
                     const CurrentRules& current_rules, const Store& store, Counters& counters)
    : options_(options),
      gate_(gate),
      current_rules_(current_rules),
      store_(store),
      counters_(counters) {
  const LocalOptions& local = options_.local;
  if (local.shown_max > 0) {
    shown_ = std::make_unique<ShownEvents>(
        ShownEvents::Limits{.events_max = local.shown_max, .kept_for = local.shown_for});
  }
  if (local.cached_caps_max > 0) {
    cache_ = std::make_unique<NegativeCache>(NegativeCache::Limits{
        .verdicts_max = local.cached_caps_max, .kept_for = local.cached_caps_for});
  }
}

Instant Judgement::instant_of(const CheckOptions& options) const {
  if (options.now) return *options.now;
  if (options_.clock) return options_.clock();
  return base::wall_now();
}

std::chrono::microseconds Judgement::deadline_of(const CheckOptions& options) const noexcept {
  return std::clamp<std::chrono::microseconds>(options.deadline.value_or(options_.deadline),
                                               std::chrono::microseconds::zero(), kDeadlineMax);
}

rules::Completeness Judgement::completeness_of(std::string_view user) const noexcept {
  if (!store_.missing_before()) return {};
  std::array<char, kKeyBytesMax> room{};
  return rules::Completeness(
      store_.record_missing_before(ledger::user_key(options_.key_prefix, user, room)));
}

Reason Judgement::prepare(std::string_view user, std::span<const Candidate> candidates,
                          const CheckOptions& options, Question& question) const {
  question.user = user;
  question.segments = options.segments;
  question.now = instant_of(options);
  question.completeness = completeness_of(user);
  question.keeps_record = options.keep_record;
  current_rules_.refresh(question.held);
  hash_candidates(candidates, question.candidates);
  if (question.held.rules == nullptr) return Reason::kNoRules;
  if (cache_ != nullptr) {
    question.subject = cache_->subject(user, options.segments, question.held.generation);
  }
  return Reason::kPassed;
}

bool Judgement::answer_without_record(const Question& question, CheckResult& result) {
  if (all_kept(question, result)) {
    result.rules = question.held.rules;
    counters_.add(CheckerCounter::cached_checks);
    counters_.add(CheckerCounter::cached_verdicts, result.verdicts.size());
    return true;
  }
  if (needs_history(question)) return false;
  const ScratchPool::HeldScratch scratch(scratches_);
  scratch->clear();
  counters_.add(CheckerCounter::shadow_capped,
                judge(*scratch, question, options_.fail_open, shadows_, result));
  counters_.add(CheckerCounter::unread_checks);
  return true;
}

// Whether every candidate has a kept cap; `result` then has them.
bool Judgement::all_kept(const Question& question, CheckResult& result) const {
  if (cache_ == nullptr || question.candidates.empty()) return false;
  const Clock::time_point clock_now = Clock::now();
  result.verdicts.clear();
  result.token = {};
  for (const rules::CandidateKey& candidate : question.candidates) {
    const auto verdict = cache_->find(*question.subject, candidate, question.now, clock_now);
    if (!verdict) return false;
    result.verdicts.push_back(*verdict);
    doubt_kept(question, result.verdicts.back());
  }
  result.reason = Reason::kPassed;
  return true;
}

void Judgement::answer(const Question& question, const ReadOutcome& outcome, CheckResult& result) {
  const ScratchPool::HeldScratch scratch(scratches_);
  const Reason reason = load(*scratch, question, outcome);
  if (reason != Reason::kPassed) {
    return count(answer_without(*scratch, question, reason, result));
  }
  const SeenRecord seen = seen_of(scratch->ledger, outcome.record.size(), question.now);
  counters_.add(CheckerCounter::shadow_capped,
                judge(*scratch, question, options_.fail_open, shadows_, result));
  result.token = seen.token();
  if (outcome.stale) return count({.cached = finish_stale(question, result)});
  if (question.keeps_record) result.token = seen.token(kept_record(question, outcome));
  keep_caps(*scratch, question, result);
}

void Judgement::count(const WithoutHistory& verdicts) noexcept {
  if (verdicts.certain > 0) counters_.add(CheckerCounter::certain_verdicts, verdicts.certain);
  if (verdicts.cached > 0) counters_.add(CheckerCounter::cached_verdicts, verdicts.cached);
}

std::uint64_t Judgement::finish_stale(const Question& question, CheckResult& result) const {
  CheckResult kept;
  kept.verdicts.resize(result.verdicts.size());
  const std::uint64_t found = put_kept_caps(question, kept);
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    Verdict& verdict = result.verdicts[i];
    if (verdict.reason == Reason::kInvalid) continue;
    verdict.stale = true;
    if (verdict.allowed && kept.verdicts[i].cached) verdict = kept.verdicts[i];
  }
  return found;
}

Reason Judgement::load(Scratch& scratch, const Question& question, const ReadOutcome& outcome) {
  if (outcome.reason == Reason::kUnavailable && gate_.closing()) return Reason::kShutdown;
  if (outcome.reason != Reason::kPassed) return outcome.reason;
  const Reason reason = decode(scratch, outcome.record);
  if (reason != Reason::kPassed) return reason;
  scratch.stale = outcome.stale;
  add_shown(scratch, question.user);
  return Reason::kPassed;
}

Reason Judgement::decode(Scratch& scratch, std::string_view record) {
  scratch.stale = false;
  if (scratch.ledger.decode(record) != ledger::DecodeCode::kOk) {
    note_undecodable();
    return Reason::kUndecodable;
  }
  counters_.add(CheckerCounter::unknown_frames, scratch.ledger.unknown_frames());
  return Reason::kPassed;
}

void Judgement::add_shown(Scratch& scratch, std::string_view user,
                          std::span<const std::uint32_t> except) {
  scratch.unconfirmed = 0;
  if (shown_ == nullptr || !shown_->used()) return;
  const ShownEvents::Merged merged = shown_->merge_into(user, Clock::now(), scratch.ledger, except);
  scratch.unconfirmed = merged.unconfirmed;
  counters_.add(CheckerCounter::shown_confirmed, merged.confirmed);
}

// Keeps the caps that the record has shown. None, if something counted that only this process knows
// of: an impression that is taken back must not leave a cap behind.
void Judgement::keep_caps(const Scratch& scratch, const Question& question,
                          const CheckResult& result) noexcept {
  if (cache_ == nullptr || scratch.unconfirmed > 0) return;
  if (question.now < kCacheFrom || question.now > kCacheUntil) return;
  const Clock::time_point clock_now = Clock::now();
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    if (result.verdicts[i].reason != Reason::kCapped) continue;
    if (const auto capped = scratch.evaluator.capped_until(i)) {
      cache_->put(*question.subject, question.candidates[i], question.now, *capped, clock_now);
    }
  }
}

// Where the history could not be had: what is capped for certain, by what this process has shown,
// by what it has read before, or by a limit of 0, is capped all the same.
WithoutHistory Judgement::answer_without(Scratch& scratch, const Question& question, Reason reason,
                                         CheckResult& result) {
  refuse(question.candidates.size(), reason, result);
  if (reason == Reason::kShutdown || question.held.rules == nullptr) return {};
  scratch.clear();
  add_shown(scratch, question.user);
  const std::uint64_t certain = cap_certain(scratch, question, result);
  return {.certain = certain, .cached = put_kept_caps(question, result)};
}

std::uint64_t Judgement::put_kept_caps(const Question& question, CheckResult& result) const {
  if (cache_ == nullptr) return 0;
  const Clock::time_point clock_now = Clock::now();
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    const auto verdict =
        cache_->find(*question.subject, question.candidates[i], question.now, clock_now);
    if (!verdict) continue;
    result.verdicts[i] = *verdict;
    doubt_kept(question, result.verdicts[i]);
    ++found;
  }
  if (found > 0) result.rules = question.held.rules;
  return found;
}

void Judgement::refuse(std::size_t candidate_count, Reason reason, CheckResult& result) const {
  answer_alike(candidate_count, reason, allows(reason), result);
}

bool Judgement::allows(Reason reason) const noexcept {
  if (reason == Reason::kNoUser) return options_.no_user == CheckerOptions::NoUserPolicy::kAllow;
  return options_.fail_open;
}

namespace {

// Picks the first `k` that are allowed, without judging again after each pick: only for verdicts
// that do not depend on what else is shown.
void first_of(const std::vector<Verdict>& verdicts, std::size_t k, Picks& picks) {
  picks.picked.clear();
  picks.judged = 0;
  for (; picks.judged < verdicts.size() && picks.picked.size() < k; ++picks.judged) {
    if (verdicts[picks.judged].allowed) picks.picked.push_back(picks.judged);
  }
}

}  // namespace

bool Judgement::pick_without_record(const Question& question, std::size_t k, Picks& picks) {
  CheckResult result;
  if (all_kept(question, result)) {
    counters_.add(CheckerCounter::cached_checks);
    counters_.add(CheckerCounter::cached_verdicts, result.verdicts.size());
    first_of(result.verdicts, k, picks);
    return true;
  }
  if (needs_history(question)) return false;
  const ScratchPool::HeldScratch scratch(scratches_);
  scratch->clear();
  pick(*scratch, question, k, options_.fail_open, shadows_, picks);
  counters_.add(CheckerCounter::shadow_capped, picks.shadow_capped);
  counters_.add(CheckerCounter::unread_checks);
  return true;
}

Reason Judgement::pick_by_record(const Question& question, std::size_t k,
                                 const ReadOutcome& outcome, Picks& picks) {
  const ScratchPool::HeldScratch scratch(scratches_);
  const Reason reason = load(*scratch, question, outcome);
  if (reason == Reason::kPassed) {
    picks.token = seen_of(scratch->ledger, outcome.record.size(), question.now).token();
    CheckResult kept;
    if (outcome.stale) {
      kept.verdicts.resize(question.candidates.size());
      count({.cached = put_kept_caps(question, kept)});
    }
    picks.stale = outcome.stale;
    pick(*scratch, question, k, options_.fail_open, shadows_, picks, kept.verdicts);
    counters_.add(CheckerCounter::shadow_capped, picks.shadow_capped);
    return reason;
  }
  CheckResult result;
  count(answer_without(*scratch, question, reason, result));
  first_of(result.verdicts, k, picks);
  return reason;
}

void Judgement::pick_refused(std::size_t candidate_count, std::size_t k, Reason reason,
                             Picks& picks) const {
  picks.picked.clear();
  picks.shadow_capped = 0;
  const bool allowed = allows(reason);
  picks.judged = allowed ? std::min(candidate_count, k) : candidate_count;
  for (std::size_t i = 0; allowed && i < picks.judged; ++i) picks.picked.push_back(i);
}

std::optional<ledger::Entry> Judgement::shown_entry(const Impression& shown) const noexcept {
  if (shown_ == nullptr || gate_.in_child() || !gate_.is_user(shown.subject.user)) {
    return std::nullopt;
  }
  return event_of(shown.candidate, shown.event_id);
}

void Judgement::forget_shown(std::string_view user, const ledger::Entry& event) noexcept {
  if (shown_ == nullptr || shown_->take_back(user, event) == ShownEvents::Taken::kNothing) return;
  counters_.add(CheckerCounter::shown_taken_back);
}

std::optional<ledger::Entry> Judgement::event_of(const Candidate& shown,
                                                 std::string_view event_id) noexcept {
  if (!ledger::is_id(event_id) || !ledger::is_id(shown.campaign) ||
      shown.creative.size() > ledger::kIdBytesMax) {
    return std::nullopt;
  }
  const rules::CandidateKey key = rules::candidate_key(shown);
  return ledger::Entry{.time = {},
                       .campaign = key.campaign,
                       .creative = key.creative,
                       .type = EventType::kImpression,
                       .fingerprint = ledger::fingerprint(event_id)};
}

std::optional<ledger::Entry> Judgement::note_shown(const Impression& shown) noexcept {
  auto entry = shown_entry(shown);
  if (!entry) return std::nullopt;
  try {
    entry->time = shown.at ? *shown.at : instant_of({});
    counters_.add(CheckerCounter::shown_displaced,
                  shown_->note(shown.subject.user, *entry, Clock::now()));
    counters_.add(CheckerCounter::shown_noted);
    return entry;
  } catch (...) {
    return std::nullopt;
  }
}

void Judgement::mark_shared(std::string_view user, const ledger::Entry& shown) noexcept {
  if (shown_ != nullptr) shown_->mark_shared(user, shown);
}

bool Judgement::take_back_shown(const Impression& shown,
                                std::optional<ledger::Entry>& released) noexcept {
  auto entry = shown_entry(shown);
  if (!entry) return false;
  const ShownEvents::Taken taken = shown_->take_back(shown.subject.user, *entry);
  if (taken == ShownEvents::Taken::kNothing) return false;
  counters_.add(CheckerCounter::shown_taken_back);
  if (taken != ShownEvents::Taken::kShared) return true;
  try {
    entry->time = instant_of({});
    released = entry;
  } catch (...) {  // NOLINT(bugprone-empty-catch): the host's clock threw; the note expires
  }
  return true;
}

void Judgement::note_undecodable() noexcept {
  // Logged at powers of two, so that a damaged population cannot flood the log.
  const auto times = undecodable_logged_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!options_.log || !std::has_single_bit(times)) return;
  try {
    options_.log(LogLevel::kError, "a user's record could not be decoded; such records so far: " +
                                       std::to_string(times));
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line is not worth a check
  }
}

void Judgement::add_stats(CheckerStats& stats) const noexcept {
  stats.cache.caps = cache_ == nullptr ? 0 : cache_->size();
  if (gate_.in_child()) return;  // no locks: their holders may not exist here
  stats.shown.kept = shown_ == nullptr ? 0 : shown_->size();
}

}  // namespace fcap::checker
