#include "checker/blocking_checks.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/caller_state.h"
#include "ledger/user_key.h"

namespace fcap::checker {
namespace {

// A batch has at most this share of the store's queue under way, so that it cannot take the place
// of everybody else's checks.
constexpr std::size_t kBatchShare = 8;
constexpr std::size_t kBatchReadsMin = 64;
// A batch is woken when so many answers wait, or a sixteenth of what is left.
constexpr std::size_t kJudgedTogether = 32;

// We ask answered() only once: if the answer arrived between two looks, this would give half a
// timeout and half a record.
ReadOutcome answer_of(const ReadGroup::Read& read, Counters& counters) noexcept {
  if (!read.answered()) return {.reason = Reason::kTimeout};
  count_read(counters, read.code(), read.stale());
  return {.reason = reason_of(read.code()),
          .record = read.record(),
          .stale = read.stale(),
          .found = read.code() == StoreCode::kOk};
}

}  // namespace

// One call, from its beginning.
struct BlockingChecks::StartedCall {
  StartedCall(const SharedParts& parts, std::size_t user_count, const CheckOptions& asked) noexcept
      : inside(parts.counters),
        timed(parts.counters.add(CheckerCounter::checks, user_count) % Latency::kOneIn == 0),
        begun(Clock::now()),
        deadline(begun + parts.judgement.deadline_of(asked)),
        options(asked) {}

  base::CallerState caller;
  CountedCall inside;
  bool timed;
  Clock::time_point begun;
  Clock::time_point deadline;
  CheckOptions options;
};

BlockingChecks::BlockingChecks(SharedParts parts)
    : parts_(parts), read_groups_(Pool<ReadGroup>::make()) {}

HeldGroup BlockingChecks::acquire_group(std::size_t question_count) {
  ReadGroup* const group = read_groups_->acquire();
  try {
    // All that can fail comes before reads are prepared: one that is prepared must be started.
    group->prepare(0);
    group->key.reserve(kKeyBytesMax);
    if (group->questions.size() < question_count) group->questions.resize(question_count);
  } catch (...) {
    Pool<ReadGroup>::release(group);
    throw;
  }
  return HeldGroup(group);
}

Reason BlockingChecks::prepare(const StartedCall& call, std::string_view user,
                               std::span<const Candidate> candidates, Question& question) const {
  const Reason refused = parts_.gate.refuse_user(user);
  if (refused != Reason::kPassed) return refused;
  return parts_.judgement.prepare(user, candidates, call.options, question);
}

const ReadGroup::Read& BlockingChecks::read_one(StartedCall& call, std::string_view user,
                                                ReadGroup& group) {
  ledger::user_key(parts_.options.key_prefix, user, group.key);
  group.prepare(1);
  if (!group.read_directly(parts_.direct, 0, group.key, call.deadline)) {
    group.start(parts_.store, 0, group.key, call.deadline);
  }
  call.inside.submitted();
  group.wait_until_left(0, call.deadline);
  if (call.timed) parts_.store_latency.add(Clock::now() - call.begun);
  return group.read(0);
}

CheckResult BlockingChecks::check(std::string_view user, std::span<const Candidate> candidates,
                                  const CheckOptions& options) noexcept {
  StartedCall call(parts_, 1, options);
  CheckResult result;
  if (parts_.room.make(candidates.size(), result.verdicts)) {
    try {
      check_one(call, user, candidates, result);
    } catch (...) {  // no memory, or the host's clock threw
      parts_.judgement.refuse(candidates.size(), Reason::kOverloaded, result);
    }
  } else {
    result.reason = Reason::kOverloaded;
  }
  count_result(parts_.counters, result);
  if (call.timed) parts_.check_latency.add(Clock::now() - call.begun);
  parts_.counters.add(CheckerCounter::checks_answered);
  return result;
}

void BlockingChecks::check_one(StartedCall& call, std::string_view user,
                               std::span<const Candidate> candidates, CheckResult& result) {
  Reason reason = parts_.gate.refuse_blocking();
  if (reason != Reason::kPassed) {
    return parts_.judgement.refuse(candidates.size(), reason, result);
  }
  const HeldGroup group = acquire_group(1);
  Question& question = group->questions.front();
  reason = prepare(call, user, candidates, question);
  if (reason != Reason::kPassed) {
    return parts_.judgement.refuse(candidates.size(), reason, result);
  }
  if (parts_.judgement.answer_without_record(question, result)) return;
  const ReadOutcome outcome = answer_of(read_one(call, user, *group), parts_.counters);
  parts_.judgement.answer(question, outcome, result);
}

PickResult BlockingChecks::first_allowed(std::string_view user, std::span<const Candidate> ranked,
                                         std::size_t k, const CheckOptions& options) noexcept {
  StartedCall call(parts_, 1, options);
  Picks picks;
  Reason reason = Reason::kPassed;
  try {
    if (k > 0 && !ranked.empty()) {
      picks.picked.reserve(std::min(k, ranked.size()));
      reason = pick(call, user, ranked, k, picks);
    } else {
      reason = parts_.gate.refuse_blocking();
      if (reason == Reason::kPassed) reason = parts_.gate.refuse_user(user);
    }
  } catch (...) {  // no memory, or the host's clock threw
    reason = Reason::kOverloaded;
    if (picks.picked.capacity() >= std::min(k, ranked.size())) {
      parts_.judgement.pick_refused(ranked.size(), k, reason, picks);
    }
  }
  Counters& counters = parts_.counters;
  counters.add(CheckerCounter::candidates, picks.judged);
  counters.add(CheckerCounter::allowed, picks.picked.size());
  counters.add_unjudged(reason);
  if (call.timed) parts_.check_latency.add(Clock::now() - call.begun);
  counters.add(CheckerCounter::checks_answered);
  return {.picked = std::move(picks.picked),
          .reason = reason,
          .stale = picks.stale,
          .token = std::move(picks.token)};
}

Reason BlockingChecks::pick(StartedCall& call, std::string_view user,
                            std::span<const Candidate> ranked, std::size_t k, Picks& picks) {
  Reason reason = parts_.gate.refuse_blocking();
  if (reason != Reason::kPassed) {
    parts_.judgement.pick_refused(ranked.size(), k, reason, picks);
    return reason;
  }
  const HeldGroup group = acquire_group(1);
  Question& question = group->questions.front();
  reason = prepare(call, user, ranked, question);
  if (reason != Reason::kPassed) {
    parts_.judgement.pick_refused(ranked.size(), k, reason, picks);
    return reason;
  }
  if (parts_.judgement.pick_without_record(question, k, picks)) return Reason::kPassed;
  const ReadOutcome outcome = answer_of(read_one(call, user, *group), parts_.counters);
  return parts_.judgement.pick_by_record(question, k, outcome, picks);
}

std::vector<CheckResult> BlockingChecks::check_batch(std::span<const CheckRequest> requests,
                                                     const CheckOptions& options) noexcept {
  StartedCall call(parts_, requests.size(), options);
  std::vector<CheckResult> results;
  try {
    results.resize(requests.size());
  } catch (...) {
    parts_.counters.add_unjudged(Reason::kOverloaded, requests.size());
    parts_.counters.add(CheckerCounter::checks_answered, requests.size());
    return results;
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    // Overwritten by whoever answers.
    results[i].reason = Reason::kOverloaded;
    (void)parts_.room.make(requests[i].candidates.size(), results[i].verdicts);
  }
  try {
    if (!parts_.gate.in_child() && !call.options.now) {
      call.options.now = parts_.judgement.instant_of(options);
    }
    const std::size_t most =
        std::max(parts_.options.redis.queue_operations_max / kBatchShare, kBatchReadsMin);
    for (std::size_t begin = 0; begin < requests.size(); begin += most) {
      const std::size_t count = std::min(most, requests.size() - begin);
      check_some(call, requests.subspan(begin, count), std::span(results).subspan(begin, count),
                 begin + count == requests.size());
    }
  } catch (...) {  // no memory, or the host's clock threw; answered below
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::size_t count = requests[i].candidates.size();
    if (results[i].verdicts.size() != count && results[i].verdicts.capacity() >= count) {
      parts_.judgement.refuse(count, Reason::kOverloaded, results[i]);
    }
    count_result(parts_.counters, results[i]);
  }
  if (call.timed) parts_.check_latency.add(Clock::now() - call.begun);
  parts_.counters.add(CheckerCounter::checks_answered, requests.size());
  return results;
}

// Answers kOverloaded where `judge` throws, so that one user of a batch is no other's trouble.
template <typename Judge>
bool BlockingChecks::guarded(std::size_t candidate_count, CheckResult& result, const Judge& judge) {
  try {
    return judge();
  } catch (...) {  // no memory
    parts_.judgement.refuse(candidate_count, Reason::kOverloaded, result);
    return true;
  }
}

// As many users as a batch may have under way. `last`: no more follow.
void BlockingChecks::check_some(StartedCall& call, std::span<const CheckRequest> requests,
                                std::span<CheckResult> results, bool last) {
  // This precedes anything that takes a lock: a forked child lacks the thread that may hold it.
  const Reason refused = parts_.gate.refuse_blocking();
  if (refused != Reason::kPassed) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (results[i].verdicts.capacity() < requests[i].candidates.size()) continue;  // no memory
      parts_.judgement.refuse(requests[i].candidates.size(), refused, results[i]);
    }
    return;
  }
  const HeldGroup group = acquire_group(requests.size());
  group->asked.clear();
  group->asked.reserve(requests.size());
  const bool late = call.deadline > call.begun && Clock::now() >= call.deadline;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (results[i].verdicts.capacity() < requests[i].candidates.size()) continue;  // no memory
    Question& question = group->questions[i];
    const bool answered = guarded(requests[i].candidates.size(), results[i], [&] {
      const Reason reason =
          prepare(call, requests[i].subject.user, requests[i].candidates, question);
      if (reason != Reason::kPassed) {
        parts_.judgement.refuse(requests[i].candidates.size(), reason, results[i]);
        return true;
      }
      if (parts_.judgement.answer_without_record(question, results[i])) return true;
      if (late) parts_.judgement.answer(question, {.reason = Reason::kTimeout}, results[i]);
      return late;
    });
    if (!answered) group->asked.push_back(i);
  }
  if (group->asked.empty()) return;
  group->prepare(group->asked.size());
  const bool alone = group->asked.size() == 1;
  for (std::size_t read = 0; read < group->asked.size(); ++read) {
    ledger::user_key(parts_.options.key_prefix, requests[group->asked[read]].subject.user,
                     group->key);
    if (alone && group->read_directly(parts_.direct, read, group->key, call.deadline)) continue;
    group->start(parts_.store, read, group->key, call.deadline);
  }
  if (last) call.inside.submitted();
  judge_arriving(call, *group, results);
}

// Judges as answers arrive, until the deadline.
void BlockingChecks::judge_arriving(const StartedCall& call, ReadGroup& group,
                                    std::span<CheckResult> results) {
  std::vector<std::size_t> waiting(group.asked.size());
  for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i] = i;
  const auto answer = [&](std::size_t read, const ReadOutcome& given) {
    const std::size_t user = group.asked[read];
    const Question& question = group.questions[user];
    (void)guarded(question.candidates.size(), results[user], [&] {
      parts_.judgement.answer(question, given, results[user]);
      return true;
    });
  };
  bool over = false;
  while (!waiting.empty() && !over) {
    const std::size_t together = std::max(kJudgedTogether, waiting.size() / 16);
    const std::size_t outstanding = group.outstanding();
    group.wait_until_left(outstanding > together ? outstanding - together : 0, call.deadline);
    // What is here at the deadline is still judged, but no more than was waited for.
    over = Clock::now() >= call.deadline;
    std::size_t judged = 0;
    std::size_t kept = 0;
    for (const std::size_t read : waiting) {
      const bool may_judge = judged < kJudgedTogether || Clock::now() < call.deadline;
      if (may_judge && group.read(read).answered()) {
        answer(read, answer_of(group.read(read), parts_.counters));
        ++judged;
      } else {
        waiting[kept++] = read;
      }
    }
    waiting.resize(kept);
  }
  for (const std::size_t read : waiting) answer(read, {.reason = Reason::kTimeout});
}

void BlockingChecks::drop_rules() noexcept {
  read_groups_->for_each_free([](ReadGroup& group) {
    for (Question& question : group.questions) question.held = {};
  });
}

}  // namespace fcap::checker
