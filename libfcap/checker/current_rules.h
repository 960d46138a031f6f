#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include <fcap/rule_set.h>
#include <fcap/segment_set.h>

namespace fcap::checker {

/// A reader's own hold on the rule set and the stored segments in use.
struct HeldRules {
  /// Another number for every pair of rule set and segments that has been in use.
  std::uint64_t generation = 0;
  /// Null before the first one. Both have reference counts of their own, so that readers on many
  /// processors do not fight over one.
  std::shared_ptr<const RuleSet> rules;
  std::shared_ptr<const SegmentSet> segments;
};

/// The rule set and the stored segments in use, each swapped for itself. A reader compares one
/// number with that of its own hold, and takes the lock only the first time after a swap.
///
/// We do this rather than load an atomic shared_ptr per check, because every load of one changes a
/// reference count that all processors share, and at millions of checks per second that one cache
/// line is what they wait for. For the same reason a hold is not a copy of the shared pointer: it
/// wraps the copy in a control block of its own (wrapped()), and results that the host keeps count
/// their references there. The price is that a reader which rests keeps the former set alive until
/// its next check; drop_rules() looks after those.
///
/// Thread safety: all functions from any thread.
class CurrentRules {
 public:
  /// Returns the one that was in use, for the caller to let go of when it likes.
  std::shared_ptr<const RuleSet> publish(std::shared_ptr<const RuleSet> rules) noexcept {
    return swap(rules_, std::move(rules));
  }
  std::shared_ptr<const SegmentSet> publish(std::shared_ptr<const SegmentSet> segments) noexcept {
    return swap(segments_, std::move(segments));
  }

  [[nodiscard]] std::shared_ptr<const RuleSet> get() const noexcept {
    const std::lock_guard lock(mutex_);
    return rules_;
  }
  [[nodiscard]] std::shared_ptr<const SegmentSet> segments() const noexcept {
    const std::lock_guard lock(mutex_);
    return segments_;
  }

  /// Brings a hold up to date. Throws std::bad_alloc; the hold is then what it was.
  void refresh(HeldRules& held) const {
    const std::uint64_t newest = generation_.load(std::memory_order_acquire);
    if (held.generation == newest) return;
    auto rules = std::make_shared<std::shared_ptr<const RuleSet>>();
    auto segments = std::make_shared<std::shared_ptr<const SegmentSet>>();
    std::uint64_t generation = 0;
    {
      const std::lock_guard lock(mutex_);
      *rules = rules_;
      *segments = segments_;
      generation = generation_.load(std::memory_order_relaxed);
    }
    held.rules = wrapped(std::move(rules));
    held.segments = wrapped(std::move(segments));
    held.generation = generation;
  }

 private:
  /// A hold that counts its references in the pointer that it was copied to.
  template <typename T>
  static std::shared_ptr<T> wrapped(std::shared_ptr<std::shared_ptr<T>> copy) noexcept {
    T* const raw = copy->get();
    return raw == nullptr ? nullptr : std::shared_ptr<T>(std::move(copy), raw);
  }

  template <typename T>
  T swap(T& current, T next) noexcept {
    const std::lock_guard lock(mutex_);
    current.swap(next);
    generation_.fetch_add(1, std::memory_order_release);
    return next;
  }

  mutable std::mutex mutex_;
  std::shared_ptr<const RuleSet> rules_;
  std::shared_ptr<const SegmentSet> segments_;
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace fcap::checker
