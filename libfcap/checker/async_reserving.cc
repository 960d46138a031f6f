#include "checker/async_reserving.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fcap::checker {

// One call on its way. One thread at a time drives it from step to step: the caller's, until the
// store is asked, and then whichever brings an answer. What the store still holds when the Checker
// ends refers to nothing but the Call itself.
class AsyncReserving::Call final : public StoreCompletion, public QueuedAnswer {
 public:
  Call(AsyncReserving& owner, const ReserveAsk& ask)
      : owner_(owner), run_(owner.parts_), kind_(ask.kind), user_(ask.user), options_(ask.options) {
    for (const Candidate& candidate : ask.ranked) {
      ranked_.push_back({std::string(candidate.campaign), std::string(candidate.creative)});
    }
    event_ids_.assign(ask.event_ids.begin(), ask.event_ids.end());
    segments_.assign(ask.options.segments.begin(), ask.options.segments.end());
    segment_views_.assign(segments_.begin(), segments_.end());
    options_.segments = segment_views_;
    if (ask.options.after != nullptr) {
      after_.record = ask.options.after->record;
      options_.after = &after_;
    }
  }

  /// The caller's thread. `self` is this, and `callback` is left alone unless it is taken.
  void begin(const std::shared_ptr<Call>& self, Callback callback) noexcept;
  void complete(const StoreOutcome& outcome) noexcept override;
  void give() noexcept override;
  /// Of a Checker that ends: answers it, unless another thread is about to.
  void end_early() noexcept;

 private:
  struct Shown {
    std::string campaign;
    std::string creative;
  };

  [[nodiscard]] ReserveRun::Step first_step() noexcept;
  [[nodiscard]] ReserveRun::Step next_step() noexcept;
  [[nodiscard]] bool ask_store() noexcept;
  void drive(bool is_caller) noexcept;
  void hand_over(bool is_caller) noexcept;
  [[nodiscard]] bool pass_on(const std::shared_ptr<Call>& self, bool is_caller) noexcept;
  void answer() noexcept;

  AsyncReserving& owner_;
  ReserveRun run_;
  ReserveAsk::Kind kind_;
  std::string user_;
  std::vector<Shown> ranked_;
  std::vector<std::string> event_ids_;
  std::vector<std::string> segments_;
  std::vector<std::string_view> segment_views_;
  CheckResult after_;
  ReserveOptions options_;
  Callback callback_;
  Store::Deadline deadline_;
  ReserveRun::Step step_ = ReserveRun::Step::kDone;

  std::mutex mutex_;
  bool driven_ = true;     // some thread is between two steps
  bool arrived_ = false;   // the store has answered
  bool known_ = false;     // the answer is known, and waits for its thread
  bool answered_ = false;  // somebody gives it, or has given it
  StoreCode code_ = StoreCode::kUnavailable;
  std::string record_;
  std::shared_ptr<Call> held_by_store_;
  std::shared_ptr<Call> held_by_queue_;
  std::shared_ptr<Call> held_by_thread_;  // while it waits for one of the Checker's own
};

void AsyncReserving::Call::begin(const std::shared_ptr<Call>& self, Callback callback) noexcept {
  callback_ = std::move(callback);
  held_by_queue_ = self;  // until it is answered
  step_ = first_step();
  drive(true);
}

ReserveRun::Step AsyncReserving::Call::first_step() noexcept {
  try {
    std::vector<Candidate> ranked;
    for (const Shown& shown : ranked_) ranked.push_back({shown.campaign, shown.creative});
    const std::vector<std::string_view> ids(event_ids_.begin(), event_ids_.end());
    deadline_ = std::chrono::steady_clock::now() +
                owner_.parts_.judgement.deadline_of({.deadline = options_.deadline});
    return run_.begin(
        {.kind = kind_, .user = user_, .ranked = ranked, .event_ids = ids, .options = options_});
  } catch (...) {  // no memory, or the host's clock threw
    run_.fail(ReserveReason::kOverloaded);
    return ReserveRun::Step::kDone;
  }
}

ReserveRun::Step AsyncReserving::Call::next_step() noexcept {
  try {
    return run_.next(step_, code_, record_);
  } catch (...) {  // no memory
    run_.fail(ReserveReason::kOverloaded);
    return ReserveRun::Step::kDone;
  }
}

// False: the Checker is being destroyed.
bool AsyncReserving::Call::ask_store() noexcept {
  const CallInside inside(owner_.parts_.counters);
  if (owner_.parts_.gate.closing()) return false;
  {
    const std::lock_guard lock(mutex_);
    held_by_store_ = held_by_queue_;
  }
  run_.start(step_, owner_.parts_.store, deadline_, *this);
  return true;
}

void AsyncReserving::Call::drive(bool is_caller) noexcept {
  while (step_ != ReserveRun::Step::kDone) {
    if (!ask_store()) {
      run_.fail(ReserveReason::kShutdown);
      break;
    }
    {
      const std::lock_guard lock(mutex_);
      if (!arrived_) {
        driven_ = false;
        return;  // complete() goes on, and may have done so already
      }
      arrived_ = false;
    }
    step_ = next_step();
  }
  hand_over(is_caller);
}

void AsyncReserving::Call::complete(const StoreOutcome& outcome) noexcept {
  std::shared_ptr<Call> self;
  {
    const std::lock_guard lock(mutex_);
    self = std::move(held_by_store_);
    if (answered_) return;
    code_ = outcome.code;
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
  CallInside inside(owner_.parts_.counters);
  inside.submitted();
  step_ = next_step();
  drive(false);
}

// As for a check: by the executor; otherwise here, on the store's thread, or on one of the
// Checker's own if this is the caller's.
void AsyncReserving::Call::hand_over(bool is_caller) noexcept {
  std::shared_ptr<Call> self;
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
bool AsyncReserving::Call::pass_on(const std::shared_ptr<Call>& self, bool is_caller) noexcept {
  if (std::holds_alternative<BatchSlot>(callback_)) return false;  // runs no code of the host's
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

void AsyncReserving::Call::give() noexcept {
  std::shared_ptr<Call> self;
  {
    const std::lock_guard lock(mutex_);
    self = std::move(held_by_thread_);
  }
  answer();
}

void AsyncReserving::Call::answer() noexcept {
  std::shared_ptr<Call> self;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(answered_, true)) return;
    self = std::move(held_by_queue_);
  }
  owner_.call_back(callback_, run_);
  callback_ = {};  // what it holds goes before anybody can think this call is over
  owner_.forget(*this);
}

void AsyncReserving::Call::end_early() noexcept {
  std::shared_ptr<Call> self;
  {
    const std::lock_guard lock(mutex_);
    if (answered_ || driven_) return;
    if (!known_) run_.cut_off(step_, ReserveReason::kShutdown);
    answered_ = true;
    self = std::move(held_by_queue_);
  }
  owner_.call_back(callback_, run_);
  callback_ = {};
  owner_.forget(*this);
}

void AsyncReserving::start(const ReserveAsk& ask, Callback callback) noexcept {
  CallInside inside(parts_.counters);
  inside.submitted();
  parts_.counters.add(Counter::reserves);
  // Before anything that takes a lock: in a child, its holder may be a thread that is not there.
  Reason refused = parts_.gate.refuse_process();
  if (refused == Reason::kPassed) {
    try {
      const auto call = std::make_shared<Call>(*this, ask);
      {
        const std::lock_guard lock(mutex_);
        calls_.push_back(call);
      }
      return call->begin(call, std::move(callback));
    } catch (...) {  // no memory
      refused = Reason::kOverloaded;
    }
  }
  ReserveRun run(parts_);
  run.refuse(ask, refused);
  call_back(callback, run);
}

std::vector<ReserveResult> AsyncReserving::reserve_batch(std::span<const ReserveRequest> requests,
                                                         const ReserveOptions& options) noexcept {
  std::shared_ptr<BatchAnswers> answers;
  try {
    answers = std::make_shared<BatchAnswers>(requests.size());
  } catch (...) {  // no memory
    return {};
  }
  const Reason refused = parts_.gate.refuse_blocking();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ReserveAsk ask{.user = requests[i].user,
                   .ranked = {&requests[i].candidate, 1},
                   .event_ids = {&requests[i].event_id, 1},
                   .options = options};
    ask.options.after = requests[i].after;
    if (refused == Reason::kPassed) {
      start(ask, BatchSlot{answers, i});
      continue;
    }
    ReserveRun run(parts_);
    run.refuse(ask, refused);
    answers->put(i, run.result());
  }
  return answers->wait();
}

void AsyncReserving::call_back(Callback& callback, const ReserveRun& run) noexcept {
  if (const auto* const slot = std::get_if<BatchSlot>(&callback)) {
    return slot->answers->put(slot->index, run.result());
  }
  async_.call_back([&] {
    if (auto* const one = std::get_if<Checker::ReserveCallback>(&callback)) {
      if (*one) (*one)(run.result());
    } else if (auto& picks = std::get<Checker::PicksCallback>(callback)) {
      picks(run.picks());
    }
  });
}

void AsyncReserving::forget(const Call& call) noexcept {
  std::shared_ptr<Call> forgotten;
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(calls_, [&](const auto& known) { return known.get() == &call; });
  if (found == calls_.end()) return;
  forgotten = std::move(*found);
  calls_.erase(found);
}

bool AsyncReserving::stop() noexcept {
  Calls ending;
  {
    const std::lock_guard lock(mutex_);
    ending = calls_;
  }
  for (const auto& call : ending) call->end_early();
  const std::lock_guard lock(mutex_);
  return calls_.empty();
}

}  // namespace fcap::checker
