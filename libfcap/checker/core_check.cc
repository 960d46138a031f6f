// The blocking forms.
#include <algorithm>
#include <new>
#include <utility>

#include "checker/core.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"

namespace fcap::checker {
namespace {

struct LeaveGroup {
  void operator()(ReadGroup* group) const noexcept { group->leave(); }
};
using HeldGroup = std::unique_ptr<ReadGroup, LeaveGroup>;

// The longest prefix and user id, and what stands between them.
constexpr std::size_t kKeyBytesMax = 64 + ledger::kIdBytesMax + 3;

// The answer where there is no memory for one.
CheckResult without_memory() noexcept {
  CheckResult result;
  result.reason = Reason::kOverloaded;
  return result;
}

HeldGroup acquire_group(Pool<ReadGroup>& pool, std::size_t read_count) {
  ReadGroup* group = pool.acquire();
  try {
    // All that can fail comes before prepare(): a read that is prepared must be started.
    group->key.reserve(kKeyBytesMax);
    group->prepare(read_count);
  } catch (...) {
    Pool<ReadGroup>::release(group);
    throw;
  }
  return HeldGroup(group);
}

struct ReadAnswer {
  Reason reason;
  std::string_view record;
};

// Looked at once: an answer that arrives between two looks would be half a timeout, half a record.
ReadAnswer answer_of(const ReadGroup::Read& read) noexcept {
  if (!read.answered()) return {Reason::kTimeout, {}};
  return {reason_of(read.code()), read.record()};
}

}  // namespace

CheckResult Core::check(std::string_view user, std::span<const Candidate> candidates,
                        const CheckOptions& options) noexcept {
  CallInside inside(counters_);
  counters_.add(Counter::kChecks);
  CheckResult result;
  try {
    result = checked(user, candidates, options, inside);
  } catch (...) {
    result = without_memory();
  }
  count_result(result);
  counters_.add(Counter::kChecksAnswered);
  return result;
}

CheckResult Core::checked(std::string_view user, std::span<const Candidate> candidates,
                          const CheckOptions& options, CallInside& inside) {
  CheckResult result;
  Reason reason = fork_guard_.in_child() ? Reason::kForked : refuse_blocking();
  if (reason == Reason::kPassed) reason = refuse_user(user);
  if (reason != Reason::kPassed) {
    refuse(candidates.size(), reason, result);
    return result;
  }
  const Clock::time_point deadline = deadline_of(options);
  const Instant now = instant_of(options);
  if (answer_from_cache(user, candidates, now, options, result)) return result;
  const HeldGroup group = acquire_group(*read_groups_, 1);
  ledger::user_key(options_.key_prefix, user, group->key);
  group->start(*store_, 0, group->key, deadline);
  inside.submitted();
  // Hashed while the request travels.
  hash_candidates(candidates, group->candidate_keys);
  group->wait_until(deadline);
  const ReadAnswer answer = answer_of(group->read(0));
  judge_record(
      {.user = user, .candidates = group->candidate_keys, .now = now, .segments = options.segments},
      answer.reason, answer.record, result);
  return result;
}

std::vector<CheckResult> Core::check_batch(std::span<const UserCandidates> users,
                                           const CheckOptions& options) noexcept {
  CallInside inside(counters_);
  counters_.add(Counter::kChecks, users.size());
  std::vector<CheckResult> results;
  try {
    results = batch_checked(users, options, inside);
  } catch (...) {
    results.clear();
  }
  for (const CheckResult& result : results) count_result(result);
  counters_.add(Counter::kChecksAnswered, users.size());
  return results;
}

std::vector<CheckResult> Core::batch_checked(std::span<const UserCandidates> users,
                                             const CheckOptions& options, CallInside& inside) {
  const Clock::time_point deadline = deadline_of(options);
  const Instant now = instant_of(options);
  const Reason refused = fork_guard_.in_child() ? Reason::kForked : refuse_blocking();
  std::vector<CheckResult> results(users.size());
  std::vector<Reason> reasons(users.size(), refused);
  std::size_t read_count = 0;
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (refused == Reason::kPassed) reasons[i] = refuse_user(users[i].user);
    if (reasons[i] != Reason::kPassed) {
      refuse(users[i].candidates.size(), reasons[i], results[i]);
    } else if (answer_from_cache(users[i].user, users[i].candidates, now, options, results[i])) {
      reasons[i] = Reason::kCapped;  // needs no read
    } else {
      ++read_count;
    }
  }
  if (read_count == 0) return results;

  const HeldGroup group = acquire_group(*read_groups_, read_count);
  std::size_t started = 0;
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (reasons[i] != Reason::kPassed) continue;
    ledger::user_key(options_.key_prefix, users[i].user, group->key);
    group->start(*store_, started++, group->key, deadline);
  }
  inside.submitted();
  group->wait_until(deadline);
  std::size_t next_read = 0;
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (reasons[i] != Reason::kPassed) continue;
    const ReadAnswer answer = answer_of(group->read(next_read++));
    hash_candidates(users[i].candidates, group->candidate_keys);
    judge_record({.user = users[i].user,
                  .candidates = group->candidate_keys,
                  .now = now,
                  .segments = options.segments},
                 answer.reason, answer.record, results[i]);
  }
  return results;
}

PickResult Core::first_allowed(std::string_view user, std::span<const Candidate> ranked,
                               std::size_t k, const CheckOptions& options) noexcept {
  CallInside inside(counters_);
  counters_.add(Counter::kChecks);
  PickResult result;
  try {
    result = picked(user, ranked, k, options, inside);
  } catch (...) {
    result = {};
    result.reason = Reason::kOverloaded;
    count_reason(result.reason);
  }
  counters_.add(Counter::kChecksAnswered);
  return result;
}

PickResult Core::picked(std::string_view user, std::span<const Candidate> ranked, std::size_t k,
                        const CheckOptions& options, CallInside& inside) {
  if (k == 0 || ranked.empty()) return {};
  Reason reason = fork_guard_.in_child() ? Reason::kForked : refuse_blocking();
  if (reason == Reason::kPassed) reason = refuse_user(user);
  CheckResult unread;
  if (reason != Reason::kPassed) {
    refuse(ranked.size(), reason, unread);
    return first_of(unread, k);
  }
  const Clock::time_point deadline = deadline_of(options);
  const Instant now = instant_of(options);
  if (answer_from_cache(user, ranked, now, options, unread)) return first_of(unread, k);

  const HeldGroup group = acquire_group(*read_groups_, 1);
  ledger::user_key(options_.key_prefix, user, group->key);
  group->start(*store_, 0, group->key, deadline);
  inside.submitted();
  hash_candidates(ranked, group->candidate_keys);
  group->wait_until(deadline);
  const Asked asked{
      .user = user, .candidates = group->candidate_keys, .now = now, .segments = options.segments};
  const ReadAnswer answer = answer_of(group->read(0));
  const Pooled<Scratch> scratch(*scratches_);
  reason = load(*scratch, user, answer.reason, answer.record);
  if (reason != Reason::kPassed) {
    refuse(ranked.size(), reason, unread);
    put_cached_caps(*scratch, asked, unread);
    return first_of(unread, k);
  }
  Picks picks = pick(*scratch, asked, k, options_.fail_open);
  count_picks(picks.judged, picks.picked.size());
  counters_.add(Counter::kShadowCapped, picks.shadow_capped);
  return {.picked = std::move(picks.picked), .reason = Reason::kPassed};
}

/// The first `k` that are allowed, where each is as it is whatever else is shown.
PickResult Core::first_of(const CheckResult& result, std::size_t k) {
  PickResult first{.picked = {}, .reason = result.reason};
  std::size_t judged = 0;
  for (; judged < result.verdicts.size() && first.picked.size() < k; ++judged) {
    if (result.verdicts[judged].allowed) first.picked.push_back(judged);
  }
  count_picks(judged, first.picked.size());
  count_reason(result.reason);
  return first;
}

void Core::count_picks(std::size_t judged, std::size_t picked) noexcept {
  counters_.add(Counter::kCandidates, judged);
  counters_.add(Counter::kAllowed, picked);
  counters_.add(Counter::kCapped, judged - picked);
}

void Core::refuse(std::size_t candidate_count, Reason reason, CheckResult& result) {
  answer_alike(candidate_count, reason, allows(reason), result);
}

Reason Core::load(Scratch& scratch, std::string_view user, Reason reason, std::string_view record) {
  if (reason == Reason::kUnavailable && closing_.load(std::memory_order_acquire)) {
    return Reason::kShutdown;
  }
  if (reason != Reason::kPassed) return reason;
  current_rules_.refresh(scratch.held);
  if (scratch.held.rules == nullptr) return Reason::kNoRules;
  if (scratch.ledger.decode(record) != ledger::DecodeCode::kOk) {
    note_undecodable();
    return Reason::kUndecodable;
  }
  counters_.add(Counter::kUnknownFrames, scratch.ledger.unknown_frames());
  add_shown(scratch, user);
  return Reason::kPassed;
}

void Core::judge_record(const Asked& asked, Reason reason, std::string_view record,
                        CheckResult& result) {
  const Pooled<Scratch> scratch(*scratches_);
  reason = load(*scratch, asked.user, reason, record);
  if (reason != Reason::kPassed) {
    refuse(asked.candidates.size(), reason, result);
    put_cached_caps(*scratch, asked, result);
    return;
  }
  counters_.add(Counter::kShadowCapped, judge(*scratch, asked, options_.fail_open, result));
  keep_caps(*scratch, asked, result);
}

}  // namespace fcap::checker
