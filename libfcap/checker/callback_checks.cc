#include "checker/callback_checks.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <utility>

#include <time.h>

#include "ledger/user_key.h"

namespace fcap::checker {
namespace {

// A callback that takes longer keeps answers of other checks waiting, which then look as if the
// store were slow.
constexpr std::chrono::milliseconds kSlowCallback{5};

// Who holds a read that is on its way.
constexpr std::uint32_t kListAndHandle = 2;
constexpr std::uint32_t kListHandleAndStore = 3;

// A share of a read, as an executor's copyable task.
class SharedRead {
 public:
  explicit SharedRead(AsyncRead& read) noexcept : read_(&read) { read_->add_reference(); }
  SharedRead(const SharedRead& other) noexcept : read_(other.read_) {
    if (read_ != nullptr) read_->add_reference();
  }
  SharedRead(SharedRead&& other) noexcept : read_(std::exchange(other.read_, nullptr)) {}
  SharedRead& operator=(const SharedRead&) = delete;
  SharedRead& operator=(SharedRead&&) = delete;
  ~SharedRead() {
    if (read_ != nullptr) read_->drop_reference();
  }

  void operator()() const noexcept { read_->run(); }

 private:
  AsyncRead* read_;
};

}  // namespace

// Costs a fifth of what the precise clock costs, twice per check. Its steps are a few
// milliseconds: a short callback counts as nothing, or now and then as one step, so that totals
// come out right.
std::chrono::nanoseconds CallbackChecks::coarse_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

CallbackChecks::CallbackChecks(SharedParts parts) : parts_(parts), reads_(Pool<AsyncRead>::make()) {
  // As many as there are threads that run callbacks when all is well.
  const std::size_t queues = std::max<std::size_t>(parts_.options.redis.io_threads, 1);
  for (std::size_t i = 0; i < queues; ++i) answer_queues_.emplace_back();
}

CallbackChecks::~CallbackChecks() = default;

Status CallbackChecks::start() {
  for (AnswerQueue& queue : answer_queues_) {
    Status status = queue.start(parts_.options.redis.thread_started);
    if (!status.ok()) return status;
  }
  return {};
}

AsyncStart CallbackChecks::check_async(std::string_view user, std::span<const Candidate> candidates,
                                       const CheckOptions& options,
                                       Checker::Callback callback) noexcept {
  CountedCall inside(parts_.counters);
  AsyncRead* const read = prepared_read(user, candidates, options);
  if (read == nullptr) {
    // Answered here and now, because there is no memory to answer later, or no thread.
    const Reason reason = parts_.gate.in_child() ? Reason::kForked : Reason::kOverloaded;
    CheckResult answer = answer_here(reason, candidates.size());
    if (options.return_known) return answered_now(std::move(answer));
    run_callback(callback, std::move(answer));
    return {};
  }
  const Store::Deadline deadline = deadline_of(*read, options);
  if (options.return_known) return start_or_answer(*read, deadline, callback);
  read->callback = std::move(callback);
  return {.answer = std::nullopt, .handle = CheckHandle(start(*read, deadline).release())};
}

AsyncStart CallbackChecks::answered_now(CheckResult answer) noexcept {
  count_answer(answer);
  return {.answer = std::move(answer), .handle = {}};
}

CallbackChecks::HeldRead CallbackChecks::pick_async(std::unique_ptr<AsyncPick> pick,
                                                    const ReserveAsk& ask,
                                                    const CheckOptions& options) noexcept {
  CountedCall inside(parts_.counters);
  const BatchTime* const batch = pick->batch();
  AsyncRead* const read = prepared_read(ask.user, ask.ranked, options, &pick);
  if (read == nullptr) {
    pick->refuse(parts_.gate.in_child() ? Reason::kForked : Reason::kOverloaded);
    finish(*pick);
    return nullptr;
  }
  if (batch == nullptr) return start(*read, deadline_of(*read, options));
  if (!read->answered && batch->is_late()) {
    judge(*read, {.reason = Reason::kTimeout});
    read->answered = true;
  }
  return start(*read, batch->deadline());
}

void CallbackChecks::cut_off(AsyncRead& read) noexcept {
  if (read.state.claim()) answer(read, {.reason = Reason::kTimeout});
}

CallbackChecks::HeldRead CallbackChecks::start(AsyncRead& read, Store::Deadline deadline) noexcept {
  if (read.answered) {
    read.share(kListAndHandle);
    HeldRead held(&read);
    remember(read);
    hand_over(read);
    return held;
  }
  read.share(kListHandleAndStore);
  HeldRead held(&read);
  remember(read);
  if (submit(read, deadline)) hand_over(read);
  return held;
}

Store::Deadline CallbackChecks::deadline_of(const AsyncRead& read,
                                            const CheckOptions& options) const noexcept {
  return read.begun + parts_.judgement.deadline_of(options);
}

AsyncStart CallbackChecks::start_or_answer(AsyncRead& read, Store::Deadline deadline,
                                           Checker::Callback& callback) noexcept {
  if (read.answered) {
    CheckResult answer = std::move(read.result);
    read.drop_reference();
    return answered_now(std::move(answer));
  }
  read.callback = std::move(callback);
  read.share(kListHandleAndStore);
  AsyncStart start{.answer = std::nullopt, .handle = CheckHandle(&read)};
  remember(read);
  if (submit(read, deadline) && read.state.claim()) {
    judge(read, read.kept_outcome());
    return answered_now(take_answer(read));
  }
  return start;
}

// Null: no memory, or a forked child. Otherwise the read has taken the `pick`, if any.
AsyncRead* CallbackChecks::prepared_read(std::string_view user,
                                         std::span<const Candidate> candidates,
                                         const CheckOptions& options,
                                         std::unique_ptr<AsyncPick>* pick) noexcept {
  const bool timed = parts_.counters.add(CheckerCounter::checks) % Latency::kOneIn == 0;
  // This precedes anything that takes a lock: a forked child lacks the thread that may hold it.
  if (parts_.gate.in_child()) return nullptr;
  AsyncRead* read = nullptr;
  try {
    read = reads_->acquire();
  } catch (...) {
    return nullptr;
  }
  const bool in_batch = pick != nullptr && (*pick)->batch() != nullptr;
  using Answerer = AsyncRead::Answerer;
  const Answerer outside = has_executor() ? Answerer::kExecutor : Answerer::kStore;
  read->prepare(*this, in_batch ? Answerer::kAnyThread : outside);
  read->begun = Clock::now();
  read->timed = timed;
  if (read->spare.capacity() < candidates.size() &&
      !parts_.room.make(candidates.size(), read->spare)) {
    read->drop_reference();
    return nullptr;
  }
  if (pick != nullptr) read->pick = std::move(*pick);
  // Before anything of the caller's is copied, which may have any length.
  Reason refused = parts_.gate.refuse_user(user);
  if (in_batch && parts_.gate.inside_callback()) refused = Reason::kReentrant;
  if (refused != Reason::kPassed) {
    refuse(*read, candidates.size(), refused);
    read->answered = true;
    return read;
  }
  try {
    if (!options.segments.empty() || !read->segments.empty()) read->keep(options.segments);
    ledger::user_key(parts_.options.key_prefix, user, read->key);
    read->answered = knows_answer(*read, user.size(), candidates, options);
  } catch (...) {  // no memory, or the host's clock threw
    refuse(*read, candidates.size(), Reason::kOverloaded);
    read->answered = true;
  }
  return read;
}

// Whether the store need not be asked; the read's result is then the answer.
bool CallbackChecks::knows_answer(AsyncRead& read, std::size_t user_bytes,
                                  std::span<const Candidate> candidates,
                                  const CheckOptions& options) {
  CheckOptions copied = options;
  copied.segments = read.segment_views;
  // The read's copy of the id is the one in its key, before the closing brace.
  const std::string_view user =
      std::string_view(read.key).substr(read.key.size() - 1 - user_bytes, user_bytes);
  Reason reason = parts_.judgement.prepare(user, candidates, copied, read.question);
  if (reason == Reason::kPassed && read.pick) reason = read.pick->refuse_ids();
  if (reason == Reason::kPassed) {
    return read.pick ? read.pick->answer_without_record(read.question)
                     : parts_.judgement.answer_without_record(read.question, read.result);
  }
  refuse(read, candidates.size(), reason);
  return true;
}

// True: the outcome is there already, and the caller's to deal with. The caller's CheckHandle
// keeps the read, which may have been answered by the time get() returns.
bool CallbackChecks::submit(AsyncRead& read, Store::Deadline deadline) noexcept {
  parts_.store.get_maybe_stale(read.key, deadline, read);
  return read.state.leave_submit();
}

void CallbackChecks::note_outcome(const AsyncRead& read, const StoreOutcome& outcome) noexcept {
  count_read(parts_.counters, outcome.code, outcome.stale);
  if (read.timed) parts_.store_latency.add(Clock::now() - read.begun);
}

void CallbackChecks::hand_over(AsyncRead& read) noexcept {
  if (read.in_batch()) return read.run();
  if (has_executor()) {
    try {
      parts_.options.executor(SharedRead(read));
      return;
    } catch (...) {
      // An executor that refuses must not lose an answer. If it took the task all the same, the
      // first of the two to run gives it.
      parts_.counters.add_unjudged(Reason::kOverloaded);
    }
  }
  read.add_reference();
  if (queue_answer(read)) return;
  read.run();  // only while the Checker is being destroyed
  read.drop_reference();
}

void CallbackChecks::answer(AsyncRead& read, const ReadOutcome& outcome) noexcept {
  if (!read.answered) judge(read, outcome);
  if (read.timed) parts_.check_latency.add(Clock::now() - read.begun);
  if (read.pick) {
    finish(*read.pick);
  } else {
    run_callback(read.callback, std::move(read.result));
  }
  end(read);
}

void CallbackChecks::judge(AsyncRead& read, const ReadOutcome& outcome) noexcept {
  try {
    if (read.pick) return read.pick->answer(read.question, outcome);
    parts_.judgement.answer(read.question, outcome, read.result);
  } catch (...) {
    refuse(read, read.question.candidates.size(), Reason::kOverloaded);
  }
}

// Takes no memory: prepared_read() has seen to it.
void CallbackChecks::refuse(AsyncRead& read, std::size_t candidate_count, Reason reason) noexcept {
  if (read.pick) return read.pick->refuse(reason);
  if (read.result.verdicts.capacity() < candidate_count) read.result.verdicts.swap(read.spare);
  parts_.judgement.refuse(candidate_count, reason, read.result);
}

// Takes the answer of a read that the caller has claimed; the callback is not called.
CheckResult CallbackChecks::take_answer(AsyncRead& read) noexcept {
  if (read.timed) parts_.check_latency.add(Clock::now() - read.begun);
  CheckResult result = std::move(read.result);
  end(read);
  return result;
}

CheckResult CallbackChecks::answer_here(Reason reason, std::size_t candidate_count) noexcept {
  CheckResult result;
  result.reason = reason;
  // In a child without the spare memory: its lock may be held for good.
  try {
    parts_.judgement.refuse(candidate_count, reason, result);
  } catch (...) {
    if (reason != Reason::kForked && parts_.room.make(candidate_count, result.verdicts)) {
      parts_.judgement.refuse(candidate_count, reason, result);
    }
  }
  return result;
}

void CallbackChecks::count_answer(const CheckResult& result) noexcept {
  count_result(parts_.counters, result);
  parts_.counters.add(CheckerCounter::checks_answered);
}

void CallbackChecks::finish(AsyncPick& pick) noexcept {
  parts_.counters.add(CheckerCounter::candidates, pick.judged());
  parts_.counters.add(CheckerCounter::allowed, pick.picked());
  parts_.counters.add_unjudged(pick.reason());
  PagePicks page = pick.take_result();
  parts_.counters.add(CheckerCounter::checks_answered);
  give(pick.callback(), std::move(page));
}

void CallbackChecks::give(AsyncPick::Callback& callback, PagePicks page) noexcept {
  if (const auto* const slot = std::get_if<BatchSlot<PagePicks>>(&callback)) {
    return slot->answers->put(slot->index, std::move(page));
  }
  auto& host = std::get<Checker::PageCallback>(callback);
  if (host) call_back([&] { host(std::move(page)); });
}

// Ends a read that the caller has claimed.
void CallbackChecks::end(AsyncRead& read) noexcept {
  {
    const CallbackFrame frame(&parts_.gate);
    read.drop_callback();
  }
  if (read.state.end()) forget(read);
}

void CallbackChecks::run_callback(Checker::Callback& callback, CheckResult result) noexcept {
  count_answer(result);
  if (!callback) return;
  call_back([&] { callback(std::move(result)); });
}

bool CallbackChecks::queue_answer(QueuedAnswer& answer) noexcept {
  return answer_queues_[current_stripe() % answer_queues_.size()].push(answer);
}

void CallbackChecks::note_thrown() noexcept {
  try {
    if (!parts_.options.log) return;
    parts_.options.log(LogLevel::kError, "an asynchronous callback threw; ignored");
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line is not worth a check
  }
}

void CallbackChecks::note_callback(std::chrono::nanoseconds taken) noexcept {
  parts_.counters.add(CheckerCounter::callback_ns_total, static_cast<std::uint64_t>(taken.count()));
  std::int64_t longest = callback_ns_max_.load(std::memory_order_relaxed);
  while (taken.count() > longest && !callback_ns_max_.compare_exchange_weak(
                                        longest, taken.count(), std::memory_order_relaxed)) {
  }
  parts_.counters.add(CheckerCounter::callbacks);
  if (taken < kSlowCallback || has_executor() || !parts_.options.log) return;
  // Logged at powers of two (the first, second, fourth, eighth time).
  const std::uint64_t times = slow_callbacks_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!std::has_single_bit(times)) return;
  try {
    parts_.options.log(
        LogLevel::kWarning,
        "a callback of an asynchronous call kept its thread for " +
            std::to_string(std::chrono::floor<std::chrono::milliseconds>(taken).count()) +
            " ms, which delays the answers to other checks and may time them out; set an executor. "
            "Slow callbacks so far: " +
            std::to_string(times));
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line is not worth a check
  }
}

void CallbackChecks::remember(AsyncRead& read) noexcept {
  read.pending_stripe = current_stripe();
  PendingList& list = pending_[read.pending_stripe];
  const std::lock_guard lock(list.mutex);
  read.previous_pending = nullptr;
  read.next_pending = list.first;
  if (list.first != nullptr) list.first->previous_pending = &read;
  list.first = &read;
}

void CallbackChecks::forget(AsyncRead& read) noexcept {
  PendingList& list = pending_[read.pending_stripe];
  {
    const std::lock_guard lock(list.mutex);
    AsyncRead*& before =
        read.previous_pending == nullptr ? list.first : read.previous_pending->next_pending;
    before = read.next_pending;
    if (read.next_pending != nullptr) read.next_pending->previous_pending = read.previous_pending;
    // The destructor may go on from here, so nothing below touches the CallbackChecks.
  }
  read.drop_reference();
}

void CallbackChecks::drop_canceled(AsyncRead& read) noexcept {
  // In a child, the lock of the list may be held by a thread that is not there.
  if (parts_.gate.in_child()) return;
  parts_.counters.add(CheckerCounter::canceled);
  parts_.counters.add(CheckerCounter::checks_answered);
  end(read);
}

void CallbackChecks::stop() noexcept {
  for (AnswerQueue& queue : answer_queues_) queue.stop();
}

bool CallbackChecks::answer_pending() noexcept {
  AsyncRead* claimed = nullptr;
  for (PendingList& list : pending_) {
    const std::lock_guard lock(list.mutex);
    for (AsyncRead* read = list.first; read != nullptr; read = read->next_pending) {
      if (!read->state.claim()) continue;
      read->add_reference();
      read->next_waiting = claimed;
      claimed = read;
    }
  }
  while (claimed != nullptr) {
    AsyncRead* const read = std::exchange(claimed, claimed->next_waiting);
    answer(*read, {.reason = Reason::kShutdown});
    read->drop_reference();
  }
  for (PendingList& list : pending_) {
    const std::lock_guard lock(list.mutex);
    if (list.first != nullptr) return false;
  }
  return true;
}

void CallbackChecks::drop_rules() noexcept {
  reads_->for_each_free([](AsyncRead& read) { read.question.held = {}; });
}

void CallbackChecks::add_stats(CheckerStats& stats) const noexcept {
  stats.async.callback_ns_max = static_cast<std::uint64_t>(callback_ns_max_.load());
  if (parts_.gate.in_child()) return;  // no locks: their holders may not exist here
  for (const AnswerQueue& queue : answer_queues_) stats.async.answers_waiting += queue.waiting();
}

}  // namespace fcap::checker
