// The completion form.
#include <new>
#include <utility>

#include "checker/callback_frame.h"
#include "checker/core.h"
#include "ledger/user_key.h"

namespace fcap::checker {
namespace {

/// A share of a read, as an executor's copyable task.
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

void Core::check_async(std::string_view user, std::span<const Candidate> candidates,
                       const CheckOptions& options, Checker::Callback callback) noexcept {
  CallInside inside(counters_);
  counters_.add(Counter::kChecks);
  // Asked before anything that takes a lock: in a child, its holder may be a thread that is not
  // there.
  Reason refused = fork_guard_.in_child() ? Reason::kForked : Reason::kPassed;
  AsyncRead* read = nullptr;
  if (refused == Reason::kPassed) {
    read = prepared_read(user, candidates, options);
    if (read == nullptr) refused = Reason::kOverloaded;
  }
  if (read != nullptr) {
    read->callback = std::move(callback);
    submit(*read, user, deadline_of(options));
    return;
  }
  // Answered here and now where there is no memory to answer later, or no thread.
  CheckResult result;
  result.reason = refused;
  try {
    refuse(candidates.size(), refused, result);
  } catch (...) {  // NOLINT(bugprone-empty-catch): then without verdicts
  }
  run_callback(callback, std::move(result));
}

/// Null: no memory, or the host's clock threw.
AsyncRead* Core::prepared_read(std::string_view user, std::span<const Candidate> candidates,
                               const CheckOptions& options) noexcept {
  AsyncRead* read = nullptr;
  try {
    read = async_reads_->acquire();
    read->prepare(*this);
    read->now = instant_of(options);
    hash_candidates(candidates, read->candidates);
    read->segments.assign(options.segments.begin(), options.segments.end());
    read->user.assign(user);
    ledger::user_key(options_.key_prefix, user, read->key);
    if (refuse_user(user) == Reason::kPassed) {
      CheckResult cached;
      if (answer_from_cache(user, candidates, read->now, options, cached)) {
        read->from_cache = std::move(cached);
      }
    }
    return read;
  } catch (...) {
    if (read != nullptr) read->drop_reference();
    return nullptr;
  }
}

void Core::submit(AsyncRead& read, std::string_view user, Clock::time_point deadline) noexcept {
  remember(read);
  const Reason refused = refuse_user(user);
  if (refused != Reason::kPassed || read.from_cache) {
    read.skip_store(refused);
    hand_over(read);
    return;
  }
  read.add_reference();  // the store's
  read.add_reference();  // ours, for the line after the next
  store_->get(read.key, deadline, read);
  read.submitted.store(true, std::memory_order_release);
  read.drop_reference();
}

void Core::hand_over(AsyncRead& read) noexcept {
  if (options_.executor) {
    try {
      options_.executor(SharedRead(read));
      return;
    } catch (...) {
      // An executor that refuses must not lose an answer. If it took the task all the same, the
      // first of the two to run gives it.
      counters_.add(Counter::kOverloaded);
    }
  }
  read.add_reference();
  if (answer_queue_.push(read, CallbackFrame::inside(this))) return;
  read.run();
  read.drop_reference();
}

void Core::answer(AsyncRead& read, Reason reason, std::string_view record) noexcept {
  CheckResult result;
  try {
    const std::vector<std::string_view> segments(read.segments.begin(), read.segments.end());
    if (reason == Reason::kPassed && read.from_cache) {
      result = std::move(*read.from_cache);
    } else {
      judge_record(
          {.user = read.user, .candidates = read.candidates, .now = read.now, .segments = segments},
          reason, record, result);
    }
  } catch (...) {
    result = {};
    result.reason = Reason::kOverloaded;
  }
  run_callback(read.callback, std::move(result));
}

void Core::run_callback(const Checker::Callback& callback, CheckResult result) noexcept {
  count_result(result);
  counters_.add(Counter::kChecksAnswered);
  if (!callback) return;
  const CallbackFrame frame(this);
  try {
    callback(std::move(result));
  } catch (...) {
    if (options_.log) options_.log(LogLevel::kError, "a check_async() callback threw; ignored");
  }
}

void Core::remember(AsyncRead& read) noexcept {
  read.pending_stripe = current_stripe();
  PendingList& list = pending_[read.pending_stripe];
  const std::lock_guard lock(list.mutex);
  read.previous_pending = nullptr;
  read.next_pending = list.first;
  if (list.first != nullptr) list.first->previous_pending = &read;
  list.first = &read;
}

void Core::forget(AsyncRead& read) noexcept {
  PendingList& list = pending_[read.pending_stripe];
  {
    const std::lock_guard lock(list.mutex);
    AsyncRead*& before =
        read.previous_pending == nullptr ? list.first : read.previous_pending->next_pending;
    before = read.next_pending;
    if (read.next_pending != nullptr) read.next_pending->previous_pending = read.previous_pending;
    // The destructor may go on from here, so nothing below touches the Core.
  }
  read.drop_reference();
}

void Core::answer_pending() noexcept {
  AsyncRead* claimed = nullptr;
  for (PendingList& list : pending_) {
    const std::lock_guard lock(list.mutex);
    for (AsyncRead* read = list.first; read != nullptr; read = read->next_pending) {
      if (!read->claim_for_shutdown()) continue;
      read->add_reference();
      read->next_waiting = claimed;
      claimed = read;
    }
  }
  while (claimed != nullptr) {
    AsyncRead* read = std::exchange(claimed, claimed->next_waiting);
    read->answer_shutdown();
    read->drop_reference();
  }
}

bool Core::any_pending() noexcept {
  for (PendingList& list : pending_) {
    const std::lock_guard lock(list.mutex);
    if (list.first != nullptr) return true;
  }
  return false;
}

}  // namespace fcap::checker
