#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include <fcap/rule_set.h>

namespace fcap::checker {

/// A reader's own hold on the rule set in use.
struct HeldRules {
  std::uint64_t generation = 0;
  /// Null before the first rule set. Has a reference count of its own, so that readers on many
  /// processors do not fight over one.
  std::shared_ptr<const RuleSet> rules;
};

/// The rule set in use. A reader compares one number with that of its own hold, and takes the lock
/// only the first time after a swap.
///
/// Thread safety: all functions from any thread.
class CurrentRules {
 public:
  /// Returns the one that was in use, for the caller to let go of when it likes.
  std::shared_ptr<const RuleSet> publish(std::shared_ptr<const RuleSet> rules) noexcept {
    const std::lock_guard lock(mutex_);
    rules_.swap(rules);
    generation_.fetch_add(1, std::memory_order_release);
    return rules;
  }

  [[nodiscard]] std::shared_ptr<const RuleSet> get() const noexcept {
    const std::lock_guard lock(mutex_);
    return rules_;
  }

  /// Brings a hold up to date. Throws std::bad_alloc; the hold is then what it was.
  void refresh(HeldRules& held) const {
    const std::uint64_t newest = generation_.load(std::memory_order_acquire);
    if (held.generation == newest) return;
    auto own = std::make_shared<std::shared_ptr<const RuleSet>>();
    std::uint64_t generation = 0;
    {
      const std::lock_guard lock(mutex_);
      *own = rules_;
      generation = generation_.load(std::memory_order_relaxed);
    }
    const RuleSet* raw = own->get();
    held.rules = raw == nullptr ? nullptr : std::shared_ptr<const RuleSet>(std::move(own), raw);
    held.generation = generation;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const RuleSet> rules_;
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace fcap::checker
