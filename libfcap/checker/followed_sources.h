#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include <fcap/checker.h>

#include "checker/current_rules.h"
#include "checker/gate.h"
#include "checker/retired_sets.h"
#include "sources/rule_refresher.h"
#include "sources/segment_refresher.h"

namespace fcap::checker {

/// The rule set and the stored segments in use: follows their sources, swaps them, and sees to it
/// that replaced ones end on a thread of their own.
///
/// Thread safety: all functions from any thread, but for start() and those that stop it.
class FollowedSources {
 public:
  /// `options` and `gate` outlive it. `let_go`: as RetiredSets calls it.
  FollowedSources(const CheckerOptions& options, const Gate& gate, std::function<void()> let_go);

  /// Begins to follow the sources, if there are any. Not ok: a setting of theirs is wrong.
  Status start();
  /// Stops looking at the sources. What was known of them last can still be asked for.
  void stop_following() noexcept;
  void stop_freeing() noexcept { retired_.stop(); }

  void set_rules(std::shared_ptr<const RuleSet> rules) noexcept;
  void set_segments(std::shared_ptr<const SegmentSet> segments) noexcept;
  [[nodiscard]] std::shared_ptr<const RuleSet> rules() const noexcept;
  [[nodiscard]] std::shared_ptr<const SegmentSet> segments() const noexcept;
  [[nodiscard]] const CurrentRules& current() const noexcept { return current_; }

  void add_stats(CheckerStats& stats) const noexcept;
  /// Throws std::bad_alloc.
  void add_health(CheckerHealth& health) const;

 private:
  using Clock = std::chrono::steady_clock;

  Status start_rules(Clock::time_point until);
  void warn_of_segments() const noexcept;
  void add_segment_stats(CheckerStats& stats) const noexcept;
  [[nodiscard]] std::chrono::milliseconds age_of_given() const noexcept;

  const CheckerOptions& options_;
  const Gate& gate_;
  CurrentRules current_;
  RetiredSets retired_;
  std::atomic<Clock::rep> rules_set_at_{0};
  std::atomic<std::uint64_t> rules_set_count_{0};
  std::atomic<std::uint64_t> segments_set_count_{0};
  std::unique_ptr<sources::RuleRefresher> refresher_;
  std::unique_ptr<sources::SegmentRefresher> segment_refresher_;
};

}  // namespace fcap::checker
