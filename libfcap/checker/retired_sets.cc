#include "checker/retired_sets.h"

#include <algorithm>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace fcap::checker {
namespace {

// Whoever drops the last reference to a set does not say so; the thread has to look. It looks less
// and less often while a host keeps a result.
constexpr int kLookMsMin = 5;
constexpr int kLookMsMax = 1'000;

}  // namespace

Status RetiredSets::start(const ThreadCallback& thread_started) {
  return thread_.start(
      "fcap-retired", [this] { run(); }, thread_started);
}

void RetiredSets::destroy_when_unused(std::shared_ptr<const void> set) noexcept {
  if (set == nullptr) return;
  try {
    const std::lock_guard lock(mutex_);
    sets_.push_back(std::move(set));
  } catch (...) {
    return;
  }
  thread_.wake();
}

void RetiredSets::stop() noexcept {
  thread_.stop();
}

void RetiredSets::run() noexcept {
  const base::LoopEvents events = thread_.events();
  pollfd polled[] = {{.fd = events.stop, .events = POLLIN, .revents = 0},
                     {.fd = events.wake, .events = POLLIN, .revents = 0}};
  bool any = false;
  int look_ms = kLookMsMin;
  while (true) {
    if (::poll(polled, 2, any ? look_ms : -1) > 0) {
      if ((polled[0].revents & POLLIN) != 0) return;
      look_ms = kLookMsMin;
      std::uint64_t count = 0;
      if ((polled[1].revents & POLLIN) != 0) (void)!::read(events.wake, &count, sizeof count);
    } else {
      look_ms = std::min(2 * look_ms, kLookMsMax);
    }
    let_go_();
    // Destroyed at the end of this statement, outside the lock.
    take_unused().clear();
    const std::lock_guard lock(mutex_);
    any = !sets_.empty();
  }
}

std::vector<std::shared_ptr<const void>> RetiredSets::take_unused() noexcept {
  std::vector<std::shared_ptr<const void>> unused;
  const std::lock_guard lock(mutex_);
  // A count of one is the reference here. It cannot grow any more: a new reference is a copy of
  // one, and whoever had one to copy would be counted.
  const auto first = std::partition(sets_.begin(), sets_.end(),
                                    [](const auto& set) { return set.use_count() > 1; });
  try {
    unused.assign(std::make_move_iterator(first), std::make_move_iterator(sets_.end()));
    sets_.erase(first, sets_.end());
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory; next time
  }
  return unused;
}

}  // namespace fcap::checker
