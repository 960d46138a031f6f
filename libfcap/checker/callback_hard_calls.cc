#include "checker/callback_hard_calls.h"

#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checker/callback_frame.h"
#include "ledger/ids.h"

namespace fcap::checker {

// One call on its way. One thread at a time drives it from step to step: the caller's, until the
// store is asked, and then whichever brings an answer. What the store still holds when the Checker
// ends refers to nothing but the ReservingCall itself.
class CallbackHardCalls::ReservingCall final : public StoreCompletion, public QueuedAnswer {
 public:
  ReservingCall(CallbackHardCalls& owner, const ReserveAsk& ask)
      : owner_(owner), run_(owner.parts_, ask), ask_(ask), user_(ledger::start_of(ask.user)) {
    for (const Candidate& candidate : ask.ranked) {
      ranked_.push_back({std::string(ledger::start_of(candidate.campaign)),
                         std::string(ledger::start_of(candidate.creative))});
    }
    for (const std::string_view id : ask.event_ids) event_ids_.emplace_back(ledger::start_of(id));
    segments_.assign(ask.segments.begin(), ask.segments.end());
    segment_views_.assign(segments_.begin(), segments_.end());
    if (ask.after != nullptr) after_ = *ask.after;
    ask_.user = user_;
    ask_.ranked = {};
    ask_.event_ids = {};
    ask_.segments = segment_views_;
    ask_.after = &after_;
  }

  // The caller's thread. `self` is this.
  void begin(const std::shared_ptr<ReservingCall>& self, Callback callback) noexcept;
  void complete(const StoreOutcome& outcome) noexcept override;
  void give() noexcept override;
  // Answers it without waiting for the store any longer. If a thread is driving it, that thread
  // ends it before it asks the store again.
  void end_early(Reason reason) noexcept;

  Calls::iterator place;  // in the owner's list, under its mutex

 private:
  struct HeldCandidate {
    std::string campaign;
    std::string creative;
  };

  [[nodiscard]] ReserveRun::ReserveStep first_step() noexcept;
  [[nodiscard]] ReserveRun::ReserveStep next_step() noexcept;
  [[nodiscard]] std::optional<Reason> ask_store() noexcept;
  void drive(bool is_caller) noexcept;
  void hand_over(bool is_caller) noexcept;
  [[nodiscard]] bool pass_on(const std::shared_ptr<ReservingCall>& self, bool is_caller) noexcept;
  void answer() noexcept;
  void call_back() noexcept;

  CallbackHardCalls& owner_;
  ReserveRun run_;
  ReserveAsk ask_;  // its views are of the copies below; first_step() adds candidates and ids
  std::string user_;
  std::vector<HeldCandidate> ranked_;
  std::vector<std::string> event_ids_;
  std::vector<std::string> segments_;
  std::vector<std::string_view> segment_views_;
  CheckToken after_;
  Callback callback_;
  Store::Deadline deadline_;
  const BatchTime* batch_ = nullptr;  // the callback's; null: it is no batch's
  ReserveRun::ReserveStep step_ = ReserveRun::ReserveStep::kDone;

  std::mutex mutex_;
  bool driven_ = true;     // some thread is between two steps
  bool arrived_ = false;   // the store has answered
  bool known_ = false;     // the answer is known, and waits for its thread
  bool answered_ = false;  // somebody gives it, or has given it
  // Set by end_early() while a thread drives the call: why that thread ends it.
  std::optional<Reason> ended_by_;
  StoreCode code_ = StoreCode::kUnavailable;
  std::string record_;
  std::size_t length_bytes_ = 0;
  std::shared_ptr<ReservingCall> held_by_store_;
  std::shared_ptr<ReservingCall> held_by_queue_;
  std::shared_ptr<ReservingCall> held_by_thread_;  // while it waits for one of the Checker's own
};

void CallbackHardCalls::ReservingCall::begin(const std::shared_ptr<ReservingCall>& self,
                                             Callback callback) noexcept {
  callback_ = std::move(callback);
  batch_ = batch_of(callback_);
  held_by_queue_ = self;  // until it is answered
  step_ = first_step();
  drive(true);
}

ReserveRun::ReserveStep CallbackHardCalls::ReservingCall::first_step() noexcept {
  if (batch_ != nullptr && batch_->is_late()) {
    run_.fail(Reason::kTimeout);
    return ReserveRun::ReserveStep::kDone;
  }
  try {
    std::vector<Candidate> ranked;
    for (const HeldCandidate& shown : ranked_) ranked.push_back({shown.campaign, shown.creative});
    const std::vector<std::string_view> ids(event_ids_.begin(), event_ids_.end());
    deadline_ = batch_ != nullptr
                    ? batch_->deadline()
                    : std::chrono::steady_clock::now() +
                          owner_.parts_.judgement.deadline_of({.deadline = ask_.deadline});
    ReserveAsk ask = ask_;
    ask.ranked = ranked;
    ask.event_ids = ids;
    return run_.begin(ask, deadline_);
  } catch (...) {  // no memory, or the host's clock threw
    run_.fail(Reason::kOverloaded);
    return ReserveRun::ReserveStep::kDone;
  }
}

ReserveRun::ReserveStep CallbackHardCalls::ReservingCall::next_step() noexcept {
  try {
    return run_.next(step_, {.code = code_, .record = record_, .length_bytes = length_bytes_});
  } catch (...) {  // no memory
    run_.fail(Reason::kOverloaded);
    return ReserveRun::ReserveStep::kDone;
  }
}

// Why the store must not be asked any more; nullopt: it has been asked.
std::optional<Reason> CallbackHardCalls::ReservingCall::ask_store() noexcept {
  const CountedCall inside(owner_.parts_.counters);
  if (owner_.parts_.gate.closing()) return Reason::kShutdown;
  {
    const std::lock_guard lock(mutex_);
    if (ended_by_) return ended_by_;
    held_by_store_ = held_by_queue_;
  }
  run_.start(step_, owner_.parts_.store, deadline_, *this);
  return std::nullopt;
}

void CallbackHardCalls::ReservingCall::drive(bool is_caller) noexcept {
  while (step_ != ReserveRun::ReserveStep::kDone) {
    if (batch_ != nullptr && batch_->is_late()) {
      run_.fail(Reason::kTimeout);
      break;
    }
    if (const auto refused = ask_store()) {
      run_.fail(*refused);
      break;
    }
    {
      const std::lock_guard lock(mutex_);
      if (!arrived_ && !ended_by_) {
        driven_ = false;
        return;  // complete() goes on, and may have done so already
      }
      if (!arrived_) {
        run_.cut_off(step_, *ended_by_);
        break;
      }
      arrived_ = false;
    }
    step_ = next_step();
  }
  hand_over(is_caller);
}

void CallbackHardCalls::ReservingCall::complete(const StoreOutcome& outcome) noexcept {
  std::shared_ptr<ReservingCall> self;
  {
    const std::lock_guard lock(mutex_);
    self = std::move(held_by_store_);
    if (answered_ || known_) return;
    code_ = outcome.code;
    length_bytes_ = outcome.length_bytes;
    try {
      record_.assign(outcome.record);
    } catch (...) {
      code_ = StoreCode::kOverloaded;
    }
    if (driven_) {
      arrived_ = true;  // the thread that asks is still under way, and goes on
      return;
    }
    driven_ = true;
  }
  // The end of the Checker waits for whoever drives it, and then for this.
  CountedCall inside(owner_.parts_.counters);
  inside.submitted();
  step_ = next_step();
  drive(false);
}

// Has the answer given as a check's is: by the executor if there is one; otherwise here, on the
// store's thread; or on a thread of the Checker's own if this is the caller's.
void CallbackHardCalls::ReservingCall::hand_over(bool is_caller) noexcept {
  std::shared_ptr<ReservingCall> self;
  {
    const std::lock_guard lock(mutex_);
    self = held_by_queue_;
    known_ = true;
  }
  if (!pass_on(self, is_caller)) return answer();
  const std::lock_guard lock(mutex_);
  driven_ = false;
}

// False: it is to be answered here and now.
bool CallbackHardCalls::ReservingCall::pass_on(const std::shared_ptr<ReservingCall>& self,
                                               bool is_caller) noexcept {
  if (batch_ != nullptr) return false;  // runs no code of the host's
  if (owner_.parts_.options.executor) {
    try {
      owner_.parts_.options.executor([self] { self->answer(); });
      return true;
    } catch (...) {  // NOLINT(bugprone-empty-catch): a thread of the Checker's gives the answer
    }
  } else if (!is_caller) {
    return false;
  }
  // The executor may have taken the task all the same, and gives the answer first.
  {
    const std::lock_guard lock(mutex_);
    held_by_thread_ = self;
  }
  if (owner_.async_.queue_answer(*this)) return true;
  const std::lock_guard lock(mutex_);
  held_by_thread_ = nullptr;
  return false;
}

void CallbackHardCalls::ReservingCall::give() noexcept {
  std::shared_ptr<ReservingCall> self;
  {
    const std::lock_guard lock(mutex_);
    self = std::move(held_by_thread_);
  }
  answer();
}

void CallbackHardCalls::ReservingCall::answer() noexcept {
  std::shared_ptr<ReservingCall> self;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(answered_, true)) return;
    self = std::move(held_by_queue_);
  }
  call_back();
}

void CallbackHardCalls::ReservingCall::end_early(Reason reason) noexcept {
  std::shared_ptr<ReservingCall> self;
  {
    const std::lock_guard lock(mutex_);
    if (answered_) return;
    if (driven_) {
      if (!ended_by_) ended_by_ = reason;
      return;
    }
    if (!known_) run_.cut_off(step_, reason);
    answered_ = true;
    self = std::move(held_by_queue_);
  }
  call_back();
}

// Called by the one thread that has set answered_.
void CallbackHardCalls::ReservingCall::call_back() noexcept {
  owner_.call_back(callback_, run_);
  {
    const CallbackFrame frame(&owner_.parts_.gate);
    callback_ = {};  // what it holds goes before anybody can think this call is over
  }
  owner_.forget(*this);
}

const BatchTime* CallbackHardCalls::batch_of(const Callback& callback) noexcept {
  if (const auto* const slot = std::get_if<BatchSlot<HardResult>>(&callback)) {
    return slot->answers.get();
  }
  if (const auto* const slot = std::get_if<BatchSlot<PagePicks>>(&callback)) {
    return slot->answers.get();
  }
  return nullptr;
}

CallbackHardCalls::Begun CallbackHardCalls::begin(const ReserveAsk& ask,
                                                  Callback callback) noexcept {
  const CountedCall inside(parts_.counters);  // so that the store stays
  parts_.counters.add(CheckerCounter::hard_calls);
  // This precedes anything that takes a lock: a forked child lacks the thread that may hold it.
  Reason refused =
      batch_of(callback) != nullptr ? parts_.gate.refuse_blocking() : parts_.gate.refuse_process();
  if (refused == Reason::kPassed) {
    try {
      const auto call = std::make_shared<ReservingCall>(*this, ask);
      {
        const std::lock_guard lock(mutex_);
        calls_.push_back(call);
        call->place = std::prev(calls_.end());
      }
      call->begin(call, std::move(callback));
      return call;
    } catch (...) {  // no memory
      refused = Reason::kOverloaded;
    }
  }
  ReserveRun run(parts_, ask);
  run.fail(refused);
  call_back(callback, run);
  return {};
}

void CallbackHardCalls::cut_off(const Begun& begun) noexcept {
  if (const auto call = begun.lock()) call->end_early(Reason::kTimeout);
}

std::vector<HardResult> CallbackHardCalls::batch(std::span<const HardRequest> requests,
                                                 const HardOptions& options) noexcept {
  // The batch counts as a call itself, so that the Checker stays between two requests, and while
  // missing answers are cut off.
  CountedCall inside(parts_.counters);
  inside.submitted();
  const auto start = [&](std::size_t i, const BatchSlot<HardResult>& slot) {
    return begin(ReserveAsk::of(requests[i], options), slot);
  };
  auto results = answer_all<HardResult>(
      requests.size(), parts_.judgement.deadline_of({.deadline = options.deadline}), start,
      cut_off);
  if (results.size() < requests.size()) count_overloaded(requests.size());
  return results;
}

void CallbackHardCalls::count_overloaded(std::size_t count) noexcept {
  parts_.counters.add(CheckerCounter::hard_calls, count);
  parts_.counters.add_ended(Reason::kOverloaded, false, count);
}

void CallbackHardCalls::call_back(Callback& callback, const ReserveRun& run) noexcept {
  if (const auto* const slot = std::get_if<BatchSlot<HardResult>>(&callback)) {
    return slot->answers->put(slot->index, run.result());
  }
  if (const auto* const slot = std::get_if<BatchSlot<PagePicks>>(&callback)) {
    return slot->answers->put(slot->index, run.picks());
  }
  async_.call_back([&] {
    if (auto* const one = std::get_if<Checker::HardCallback>(&callback)) {
      if (*one) (*one)(run.result());
    } else if (auto& picks = std::get<Checker::PageCallback>(callback)) {
      picks(run.picks());
    }
  });
}

void CallbackHardCalls::forget(ReservingCall& call) noexcept {
  std::shared_ptr<ReservingCall> forgotten;
  const std::lock_guard lock(mutex_);
  forgotten = std::move(*call.place);
  calls_.erase(call.place);
}

// Ends each call that is in the list now, once. Calls that another thread drives stay in it.
bool CallbackHardCalls::stop() noexcept {
  std::unique_lock lock(mutex_);
  for (std::size_t left = calls_.size(); left > 0 && !calls_.empty(); --left) {
    std::shared_ptr<ReservingCall> call = calls_.front();
    calls_.splice(calls_.end(), calls_, calls_.begin());
    lock.unlock();
    call->end_early(Reason::kShutdown);
    call = nullptr;
    lock.lock();
  }
  return calls_.empty();
}

}  // namespace fcap::checker
