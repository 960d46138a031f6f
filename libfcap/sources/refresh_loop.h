#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <fcap/checker_options.h>
#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "base/background_thread.h"
#include "sources/look_timer.h"
#include "sources/pg_status.h"
#include "sources/reload_policy.h"
#include "sources/rule_refresher.h"
#include "sources/rule_source.h"

namespace fcap::sources {

/// What a RuleRefresher's thread does: looks at the source, judges what it finds, hands it out,
/// publishes it, and waits.
///
/// Thread safety: run() on one thread; state() and wait_for_first_round() on any.
class RefreshLoop {
 public:
  RefreshLoop(RuleSourceOptions options, RuleSet::Options build_options, RuleRefresher::Sink sink,
              LogCallback log, base::LoopEvents events);

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
  Status hand_out_if_accepted(OfferedRules offered);
  void note_quarantined(std::vector<std::string> all, const std::vector<std::string>& of_set);
  void report();
  void hand_out(std::shared_ptr<const RuleSet> set, Clock::time_point current_at,
                std::string_view source);
  void still_current();
  void publish();
  void note_failure(const Status& status);
  void log(LogLevel level, const std::string& text) const;
  [[nodiscard]] bool from_postgres() const { return !options_.postgres.empty(); }

  const RuleSourceOptions options_;
  const RuleSet::Options build_options_;
  const RuleRefresher::Sink sink_;
  const LogCallback log_;
  const base::LoopEvents events_;

  // What follows is the thread's in run() alone.
  PostgresSource postgres_;
  FileSource file_;
  StatusReporter reporter_;
  std::uint64_t failed_before_ = 0;
  LookTimer timer_;
  bool published_ = true;
  /// The set in force, or before there is one the snapshot's; null: neither.
  [[nodiscard]] const std::shared_ptr<const RuleSet>& last_good() const {
    return current_ ? current_ : fallback_;
  }
  std::shared_ptr<const RuleSet> fallback_;
  std::shared_ptr<const RuleSet> current_;
  base::TableVersion version_;  ///< what current_, or before it fallback_, was read from

  mutable std::mutex mutex_;
  std::condition_variable first_round_over_;
  bool first_round_done_ = false;
  RefreshState state_;
  std::optional<Clock::time_point> current_at_;
};

}  // namespace fcap::sources
