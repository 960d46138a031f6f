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

/// Counts a call for as long as it may touch the Core.
class CallInside {
 public:
  explicit CallInside(Counters& counters) noexcept : counters_(counters) {
    counters_.add(Counter::kCallsBegun);
  }
  ~CallInside() { counters_.add_release(Counter::kCallsEnded); }
  CallInside(const CallInside&) = delete;
  CallInside& operator=(const CallInside&) = delete;

 private:
  Counters& counters_;
};

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
  const CallInside inside(counters_);
  counters_.add(Counter::kChecks);
  CheckResult result;
  try {
    result = checked(user, candidates, options);
  } catch (...) {
    result = without_memory();
  }
  count_result(result);
  counters_.add(Counter::kChecksAnswered);
  return result;
}

CheckResult Core::checked(std::string_view user, std::span<const Candidate> candidates,
                          const CheckOptions& options) {
  CheckResult result;
  Reason reason = fork_guard_.in_child() ? Reason::kForked : refuse_blocking();
  if (reason == Reason::kPassed) reason = refuse_user(user);
  if (reason != Reason::kPassed) {
    refuse(candidates.size(), reason, result);
    return result;
  }
  const Clock::time_point deadline = deadline_of(options);
  const HeldGroup group = acquire_group(*read_groups_, 1);
  ledger::user_key(options_.key_prefix, user, group->key);
  group->start(*store_, 0, group->key, deadline);
  // Hashed while the request travels.
  hash_candidates(candidates, group->candidate_keys);
  const Instant now = instant_of(options);
  group->wait_until(deadline);
  const ReadAnswer answer = answer_of(group->read(0));
  judge_record(
      {.user = user, .candidates = group->candidate_keys, .now = now, .segments = options.segments},
      answer.reason, answer.record, result);
  return result;
}

std::vector<CheckResult> Core::check_batch(std::span<const UserCandidates> users,
                                           const CheckOptions& options) noexcept {
  const CallInside inside(counters_);
  counters_.add(Counter::kChecks, users.size());
  std::vector<CheckResult> results;
  try {
    results = batch_checked(users, options);
  } catch (...) {
    results.clear();
  }
  for (const CheckResult& result : results) count_result(result);
  counters_.add(Counter::kChecksAnswered, users.size());
  return results;
}

std::vector<CheckResult> Core::batch_checked(std::span<const UserCandidates> users,
                                             const CheckOptions& options) {
  const Clock::time_point deadline = deadline_of(options);
  const Instant now = instant_of(options);
  const Reason refused = fork_guard_.in_child() ? Reason::kForked : refuse_blocking();
  std::vector<CheckResult> results(users.size());
  std::vector<Reason> reasons(users.size(), refused);
  std::size_t read_count = 0;
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (refused == Reason::kPassed) reasons[i] = refuse_user(users[i].user);
    if (reasons[i] == Reason::kPassed) {
      ++read_count;
    } else {
      refuse(users[i].candidates.size(), reasons[i], results[i]);
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

std::vector<std::size_t> Core::first_allowed(std::string_view user,
                                             std::span<const Candidate> ranked, std::size_t k,
                                             const CheckOptions& options) noexcept {
  const CallInside inside(counters_);
  counters_.add(Counter::kChecks);
  std::vector<std::size_t> result;
  try {
    result = picked(user, ranked, k, options);
  } catch (...) {
    count_reason(Reason::kOverloaded);
  }
  counters_.add(Counter::kChecksAnswered);
  return result;
}

std::vector<std::size_t> Core::picked(std::string_view user, std::span<const Candidate> ranked,
                                      std::size_t k, const CheckOptions& options) {
  std::vector<std::size_t> result;
  if (k == 0 || ranked.empty()) return result;
  std::size_t judged = 0;
  Reason reason = fork_guard_.in_child() ? Reason::kForked : refuse_blocking();
  if (reason == Reason::kPassed) reason = refuse_user(user);
  if (reason == Reason::kPassed) {
    const Clock::time_point deadline = deadline_of(options);
    const HeldGroup group = acquire_group(*read_groups_, 1);
    ledger::user_key(options_.key_prefix, user, group->key);
    group->start(*store_, 0, group->key, deadline);
    hash_candidates(ranked, group->candidate_keys);
    const Instant now = instant_of(options);
    group->wait_until(deadline);
    const ReadAnswer answer = answer_of(group->read(0));
    const Pooled<Scratch> scratch(*scratches_);
    reason = load(*scratch, answer.reason, answer.record);
    if (reason == Reason::kPassed) {
      result = pick(*scratch,
                    {.user = user,
                     .candidates = group->candidate_keys,
                     .now = now,
                     .segments = options.segments},
                    k, options_.fail_open, judged);
    }
  }
  if (reason != Reason::kPassed) {
    judged = ranked.size();
    if (allows(reason)) {
      judged = std::min(k, ranked.size());
      for (std::size_t i = 0; i < judged; ++i) result.push_back(i);
    }
    count_reason(reason);
  }
  counters_.add(Counter::kCandidates, judged);
  counters_.add(Counter::kAllowed, result.size());
  counters_.add(Counter::kCapped, judged - result.size());
  return result;
}

void Core::refuse(std::size_t candidate_count, Reason reason, CheckResult& result) {
  answer_alike(candidate_count, reason, allows(reason), result);
}

Reason Core::load(Scratch& scratch, Reason reason, std::string_view record) {
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
  return Reason::kPassed;
}

void Core::judge_record(const Asked& asked, Reason reason, std::string_view record,
                        CheckResult& result) {
  const Pooled<Scratch> scratch(*scratches_);
  reason = load(*scratch, reason, record);
  if (reason != Reason::kPassed) return refuse(asked.candidates.size(), reason, result);
  counters_.add(Counter::kShadowCapped, judge(*scratch, asked, options_.fail_open, result));
}

}  // namespace fcap::checker
