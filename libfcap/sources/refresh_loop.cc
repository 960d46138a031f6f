#include "sources/refresh_loop.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "postgres/conninfo.h"
#include "rule_text/snapshot.h"
#include "rules/rule_set_access.h"

namespace fcap::sources {
namespace {

using std::chrono::milliseconds;

// A whole load, a million rules included.
constexpr milliseconds kLoadTimeout{30'000};
constexpr std::size_t kWarningsLoggedMax = 20;
constexpr milliseconds kReportTimeout{5'000};
// From here on reading the tables takes so long that a start does not wait for it when it has the
// snapshot's rules.
constexpr std::size_t kSlowFromRules = 50'000;

bool no_answer(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kDeadlineExceeded || status.code() == StatusCode::kInternal ||
         (status.code() == StatusCode::kNotFound && status.retryable());
}

RuleSetSize size_of(const RuleSet& set) {
  return {set.version(), set.rules().size(), set.campaigns().size()};
}

RuleSet::Options with_quarantine(RuleSet::Options options) {
  options.quarantine = true;
  return options;
}

}  // namespace

RefreshLoop::RefreshLoop(RuleSourceOptions options, RuleSet::Options build_options,
                         RuleRefresher::Sink sink, LogCallback log, base::LoopEvents events)
    : options_(std::move(options)),
      build_options_(with_quarantine(build_options)),
      sink_(std::move(sink)),
      log_(std::move(log)),
      events_(events),
      postgres_(options_.postgres),
      file_(options_.snapshot_file),
      reporter_(options_.postgres),
      timer_(options_.poll_interval, events) {
  if (options_.listen && from_postgres()) timer_.listen(options_.postgres, "fcap_rules");
  state_.source = "none";
}

Status RefreshLoop::check_options() const {
  if (options_.postgres.empty() && options_.snapshot_file.empty()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "no source of rules: set rules.postgres or rules.snapshot_file");
  }
  if (options_.postgres.find('\0') != std::string::npos ||
      options_.snapshot_file.find('\0') != std::string::npos) {
    return Status::error(StatusCode::kInvalidArgument,
                         "rules.postgres and rules.snapshot_file must not contain a NUL");
  }
  if (from_postgres()) {
    if (Status status = postgres::check_conninfo(options_.postgres); !status.ok()) return status;
  }
  if (!(options_.shrink_refused_below >= 0 && options_.shrink_refused_below <= 1)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "rules.shrink_refused_below must be from 0 to 1");
  }
  return {};
}

void RefreshLoop::run(milliseconds first_wait) {
  first_round(first_wait);
  report();
  while (timer_.wait()) {
    bool changed = false;
    const bool answered = look(kLoadTimeout, changed);
    timer_.looked(answered, changed);
    report();
  }
}

// Tells the database which version is in use, for whoever has changed the rules and wonders.
void RefreshLoop::report() {
  if (!from_postgres() || timer_.stopping()) return;
  try {
    const RefreshState now = state();
    // A server that has just not answered is not asked for more.
    if (std::exchange(failed_before_, now.failed) != now.failed) return;
    reporter_.report(now, {Clock::now() + kReportTimeout, events_.stop});
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // Out of memory; it is told another time.
  }
}

void RefreshLoop::first_round(milliseconds first_wait) {
  milliseconds timeout = kLoadTimeout;
  if (from_postgres() && !options_.snapshot_file.empty()) {
    build_fallback();
    if (fallback_ && fallback_->rules().size() >= kSlowFromRules) {
      hand_out(fallback_, file_.current_at(), "snapshot");
      end_first_round();
    } else if (fallback_) {
      // Somebody waits for this round: at least half of the time is left for the snapshot's rules.
      timeout = std::clamp(first_wait / 2, milliseconds{1}, kLoadTimeout);
    }
  }
  bool changed = false;
  const bool answered = look(timeout, changed);
  if (!answered && fallback_ && !timer_.stopping()) {
    log(LogLevel::kWarning, "rules: started from the snapshot " + options_.snapshot_file);
    if (!current_) hand_out(fallback_, file_.current_at(), "snapshot");
  }
  fallback_.reset();
  timer_.looked(answered, changed);
  end_first_round();
}

void RefreshLoop::end_first_round() {
  const std::lock_guard lock(mutex_);
  first_round_done_ = true;
  first_round_over_.notify_all();
}

// Makes a rule set of the snapshot, the last good one that some process had. A first load is
// compared with it, so that a restart does not let in what a reload would refuse.
void RefreshLoop::build_fallback() {
  try {
    Result<std::optional<OfferedRules>> offered = file_.look(nullptr);
    Status status = offered.status();
    if (status.ok() && offered.value()) {
      auto built = rules::RuleSetAccess::build(std::move(offered.value()->spec), build_options_);
      if (built.ok()) {
        fallback_ = built.value();
        version_ = std::move(offered.value()->version);
        // Tables that are still in this state need not be read.
        if (version_.from_tables()) postgres_.assume_taken(version_);
      }
      status = built.status();
    }
    if (!status.ok() && status.code() != StatusCode::kNotFound) {
      log(LogLevel::kWarning, "rules: the snapshot is not used: " + status.text());
    }
  } catch (const std::exception& failure) {
    log(LogLevel::kWarning, std::string("rules: the snapshot is not used: ") + failure.what());
  }
}

bool RefreshLoop::look(milliseconds timeout, bool& changed) {
  Status status;
  try {
    status = look_once(timeout, changed);
  } catch (const std::exception& failure) {
    // Out of memory, most likely; the host must not die of it.
    status = Status::error(StatusCode::kInternal, std::string("rules: ") + failure.what(), true);
  }
  if (!status.ok() && !timer_.stopping()) note_failure(status);
  return status.ok();
}

Status RefreshLoop::look_once(milliseconds timeout, bool& changed) {
  Result<std::optional<OfferedRules>> offered = offer_of_source(timeout);
  if (!offered.ok()) return offered.status();
  if (!offered.value()) {
    if (!current_) hand_out(fallback_, Clock::now(), "postgres");
    still_current();
    return {};
  }
  if (timer_.stopping()) return {};
  changed = current_ != nullptr;
  return hand_out_if_accepted(*std::move(offered).value());
}

Result<std::optional<OfferedRules>> RefreshLoop::offer_of_source(milliseconds timeout) {
  // The rules in force stay until the new ones are whole, so the two share what is equal.
  const RuleSet* last = last_good().get();
  if (from_postgres()) return postgres_.look({Clock::now() + timeout, events_.stop}, last);
  return file_.look(last);
}

Status RefreshLoop::hand_out_if_accepted(OfferedRules offered) {
  auto built = rules::RuleSetAccess::build(std::move(offered.spec), build_options_);
  if (!built.ok()) return built.status();
  const std::shared_ptr<const RuleSet>& last = last_good();
  const ReloadDecision judgement =
      decide_reload(last ? std::optional(size_of(*last)) : std::nullopt, size_of(*built.value()),
                    {options_.shrink_refused_below, options_.accept_any_shrink,
                     offered.version.accepted_version});
  const std::string version = "version " + std::to_string(built.value()->version());
  if (!judgement.accepted) {
    return Status::error(StatusCode::kRefused,
                         "rules: " + version + " is refused, " + judgement.remark, true);
  }
  if (!judgement.remark.empty()) {
    log(LogLevel::kWarning, "rules: " + version + ": " + judgement.remark);
  }
  if (from_postgres()) {
    postgres_.taken();
  } else {
    file_.taken();
  }
  version_ = std::move(offered.version);
  note_quarantined(std::move(offered.quarantined), built.value()->quarantined());
  hand_out(std::move(built).value(), offered.current_at, from_postgres() ? "postgres" : "snapshot");
  if (from_postgres()) publish();
  return {};
}

void RefreshLoop::note_quarantined(std::vector<std::string> all,
                                   const std::vector<std::string>& of_set) {
  all.insert(all.end(), of_set.begin(), of_set.end());
  const std::size_t count = all.size();
  all.resize(std::min(count, kQuarantinedNamedMax));
  for (const std::string& why : all) {
    log(LogLevel::kError, "rules: quarantined, the other rules are in force: " + why);
  }
  if (count > all.size()) {
    log(LogLevel::kError,
        "rules: and " + std::to_string(count - all.size()) + " more are quarantined");
  }
  version_.rows_left_out = count;
  const std::lock_guard lock(mutex_);
  state_.quarantined_count = count;
  state_.quarantined = std::move(all);
}

void RefreshLoop::hand_out(std::shared_ptr<const RuleSet> set, Clock::time_point current_at,
                           std::string_view source) {
  // Nothing here keeps the former set: the receiver decides when it ends. If both kept it until
  // nobody else did, each would wait for the other forever.
  current_ = std::move(set);
  sink_(current_);
  {
    const std::lock_guard lock(mutex_);
    state_.version = current_->version();
    state_.rule_count = current_->rules().size();
    ++state_.reloads;
    state_.source = source;
    current_at_ = current_at;
    // While a snapshot stands in for PostgreSQL, the failure of PostgreSQL stays noted.
    if (from_postgres() == (source == "postgres")) state_.last_error.clear();
  }
  log(LogLevel::kInfo, "rules: version " + std::to_string(current_->version()) + " from " +
                           std::string(source) +
                           ", rules: " + std::to_string(current_->rules().size()) +
                           ", campaigns: " + std::to_string(current_->campaigns().size()));
  const auto& warnings = current_->warnings();
  const std::size_t shown = std::min(warnings.size(), kWarningsLoggedMax);
  for (std::size_t i = 0; i < shown; ++i) log(LogLevel::kWarning, "rules: " + warnings[i]);
  if (shown < warnings.size()) {
    log(LogLevel::kWarning,
        "rules: and " + std::to_string(warnings.size() - shown) + " more warnings");
  }
}

void RefreshLoop::still_current() {
  {
    const std::lock_guard lock(mutex_);
    current_at_ = from_postgres() ? Clock::now() : file_.current_at();
    if (from_postgres()) state_.source = "postgres";
    state_.last_error.clear();
  }
  if (!from_postgres() || options_.snapshot_file.empty()) return;
  if (published_) {
    rule_text::touch_snapshot(options_.snapshot_file);
  } else {
    publish();
  }
}

void RefreshLoop::publish() {
  if (options_.snapshot_file.empty()) return;
  const Status status =
      rule_text::publish_snapshot(options_.snapshot_file, rule_text::view_of(*current_, version_));
  if (!status.ok() && published_) log(LogLevel::kWarning, "rules: " + status.text());
  published_ = status.ok();
}

void RefreshLoop::note_failure(const Status& status) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    ++(no_answer(status) ? state_.failed : state_.refused);
    news = state_.last_error != status.text();
    state_.last_error = status.text();
  }
  // The same failure every few seconds is one line, not thousands.
  if (news) log(LogLevel::kError, "rules: not refreshed: " + status.text());
}

Status RefreshLoop::wait_for_first_round(milliseconds wait) {
  std::unique_lock lock(mutex_);
  first_round_over_.wait_for(lock, wait, [this] { return first_round_done_; });
  if (state_.reloads > 0) return {};
  const std::string& reason = state_.last_error;
  return Status::error(StatusCode::kUnavailable,
                       "no rules yet: " + (reason.empty() ? "no answer so far" : reason), true);
}

RefreshState RefreshLoop::state() const {
  const std::lock_guard lock(mutex_);
  RefreshState state = state_;
  if (current_at_) {
    state.age = std::chrono::duration_cast<milliseconds>(Clock::now() - *current_at_);
  }
  return state;
}

void RefreshLoop::log(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

}  // namespace fcap::sources
