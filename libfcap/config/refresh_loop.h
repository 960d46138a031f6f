#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <fcap/checker_options.h>
#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "config/background_thread.h"
#include "config/look_timer.h"
#include "config/reload_policy.h"
#include "config/rule_refresher.h"
#include "config/rule_source.h"

namespace fcap::config {

/// What a RuleRefresher's thread does: looks at the source, judges what it finds, hands it out,
/// publishes it, and waits.
///
/// Thread safety: run() on one thread; state() and wait_for_first_round() on any.
class RefreshLoop {
 public:
  RefreshLoop(RuleSourceOptions options, RuleSet::Options build_options, RuleRefresher::Sink sink,
              LogCallback log, LoopEvents events);

  [[nodiscard]] Status check_options() const;

  /// Returns once the stop event is readable. `first_wait`: how long somebody waits for the first
  /// round.
  void run(std::chrono::milliseconds first_wait);

  /// Ok: a rule set has been handed out. Otherwise every source has been asked once without
  /// success, or the wait is over.
  Status wait_for_first_round(std::chrono::milliseconds wait);

  [[nodiscard]] RefreshState state() const;

 private:
  using Clock = std::chrono::steady_clock;

  void first_round(std::chrono::milliseconds first_wait);
  void build_fallback();
  void end_first_round();
  /// Whether the source answered with something usable, be it "unchanged". `changed`: it was not.
  bool look(std::chrono::milliseconds timeout, bool& changed);
  Status look_once(std::chrono::milliseconds timeout, bool& changed);
  Result<std::optional<OfferedRules>> offer_of_source(std::chrono::milliseconds timeout);
  Status take(OfferedRules offered);
  void hand_out(std::shared_ptr<const RuleSet> set, Clock::time_point current_at,
                std::string_view source);
  bool free_retired();
  void still_current();
  void publish();
  void note_failure(const Status& status);
  void log(LogLevel level, const std::string& text) const;
  [[nodiscard]] bool from_postgres() const { return !options_.postgres.empty(); }

  const RuleSourceOptions options_;
  const RuleSet::Options build_options_;
  const RuleRefresher::Sink sink_;
  const LogCallback log_;
  const LoopEvents events_;

  // Of the thread in run() alone.
  PostgresSource postgres_;
  FileSource file_;
  LookTimer timer_;
  bool published_ = true;
  std::shared_ptr<const RuleSet> fallback_;
  std::shared_ptr<const RuleSet> current_;
  /// Former sets that checks may still use. A set of a million rules takes a tenth of a second or
  /// more to free, so this thread does it, and holds each one until nobody else does.
  std::vector<std::shared_ptr<const RuleSet>> retired_;
  std::string changed_at_;  ///< of the tables that current_, or before it fallback_, comes from

  mutable std::mutex mutex_;
  std::condition_variable first_round_over_;
  bool first_round_done_ = false;
  RefreshState state_;
  std::optional<Clock::time_point> current_at_;
};

}  // namespace fcap::config
