#include "checker/blocking_hard_calls.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/caller_state.h"

namespace fcap::checker {

BlockingHardCalls::BlockingHardCalls(SharedParts parts)
    : parts_(parts), read_groups_(Pool<ReadGroup>::make()) {}

HardResult BlockingHardCalls::call(const HardRequest& request,
                                   const HardOptions& options) noexcept {
  const ReserveAsk ask = ReserveAsk::of(request, options);
  ReserveRun run(parts_, ask);
  perform(run, ask);
  return run.result();
}

PagePicks BlockingHardCalls::pick(const ReserveAsk& ask) noexcept {
  ReserveRun run(parts_, ask);
  perform(run, ask);
  return run.picks();
}

// The destructor waits for the call, but keeps the store only while the call touches it.
void BlockingHardCalls::perform(ReserveRun& run, const ReserveAsk& ask) noexcept {
  const base::CallerState caller;
  CountedCall inside(parts_.counters);
  parts_.counters.add(CheckerCounter::hard_calls);
  if (const Reason refused = parts_.gate.refuse_blocking(); refused != Reason::kPassed) {
    return run.fail(refused);
  }
  try {
    drive(run, ask, inside);
  } catch (...) {  // no memory, or the host's clock threw
    run.fail(Reason::kOverloaded);
  }
}

void BlockingHardCalls::drive(ReserveRun& run, const ReserveAsk& ask, CountedCall& inside) {
  const Clock::time_point deadline =
      Clock::now() + parts_.judgement.deadline_of({.deadline = ask.deadline});
  ReserveRun::ReserveStep step = run.begin(ask, deadline);  // asks the store what may be written
  inside.submitted();  // from here on, each step counts itself in
  while (step != ReserveRun::ReserveStep::kDone) {
    const HeldGroup group =
        ask_store(deadline, [&](ReadGroup& calls) { start(run, step, deadline, calls); });
    if (!group) return run.fail(Reason::kShutdown);
    const ReadGroup::Read& read = group->read(0);
    step = run.next(step,
                    read.answered() ? read.outcome() : StoreOutcome{.code = StoreCode::kTimeout});
  }
}

void BlockingHardCalls::start(const ReserveRun& run, ReserveRun::ReserveStep step,
                              Clock::time_point deadline, ReadGroup& calls) {
  const bool reads = step == ReserveRun::ReserveStep::kRead;
  if (reads && calls.read_directly(parts_.direct, 0, run.key(), deadline)) return;
  run.start(step, parts_.store, deadline, calls.completion(0));
}

// Starts one operation and waits for it. Null: the Checker is being destroyed. Each operation has a
// group of its own, as the last one's may still be held by its completion.
template <typename Start>
HeldGroup BlockingHardCalls::ask_store(Clock::time_point deadline, const Start& start) {
  HeldGroup group(read_groups_->acquire());
  group->prepare(0);
  {
    const CountedCall inside(parts_.counters);
    if (parts_.gate.closing()) return nullptr;
    group->prepare(1);
    start(*group);
  }
  group->wait_until_left(0, deadline);
  return group;
}

}  // namespace fcap::checker
