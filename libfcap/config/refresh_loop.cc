#include "config/refresh_loop.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "config/snapshot.h"

namespace fcap::config {
namespace {

using std::chrono::milliseconds;

/// A whole load, a million rules included.
constexpr milliseconds kLoadTimeout{30'000};
constexpr milliseconds kListenTimeout{5'000};
/// Between two looks, however many changes are announced.
constexpr milliseconds kLookGap{100};
constexpr std::size_t kWarningsLoggedMax = 20;

bool no_answer(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kDeadlineExceeded || status.code() == StatusCode::kInternal ||
         (status.code() == StatusCode::kNotFound && status.retryable());
}

RuleSetSize size_of(const RuleSet& set) {
  return {set.version(), set.rules().size(), set.campaigns().size()};
}

RuleSetSpec spec_of(const RuleSet& set) {
  return {set.version(), set.rules(), set.campaigns()};
}

}  // namespace

RefreshLoop::RefreshLoop(RuleSourceOptions options, RuleSet::Options build_options,
                         RuleRefresher::Sink sink, LogCallback log, Events events)
    : options_(std::move(options)),
      build_options_(build_options),
      sink_(std::move(sink)),
      log_(std::move(log)),
      events_(events),
      postgres_(options_.postgres),
      file_(options_.snapshot_file),
      schedule_(options_.poll_interval),
      // Spreads processes; nothing depends on its quality.
      random_(static_cast<std::minstd_rand::result_type>(
          Clock::now().time_since_epoch().count() ^ (static_cast<long long>(::getpid()) << 16))) {
  if (options_.listen && from_postgres()) listener_.emplace(options_.postgres);
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
    if (Status status = check_conninfo(options_.postgres); !status.ok()) return status;
  }
  if (!(options_.shrink_refused_below >= 0 && options_.shrink_refused_below <= 1)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "rules.shrink_refused_below must be from 0 to 1");
  }
  return {};
}

void RefreshLoop::run(milliseconds first_wait) {
  first_round(first_wait);
  while (wait()) {
    listen();
    if (Clock::now() < look_at_) continue;
    const bool answered = look(kLoadTimeout);
    const milliseconds delay =
        answered ? schedule_.after_answer(random()) : schedule_.after_failure(random());
    look_at_ = Clock::now() + delay;
  }
}

void RefreshLoop::first_round(milliseconds first_wait) {
  milliseconds timeout = kLoadTimeout;
  if (from_postgres() && !options_.snapshot_file.empty()) {
    build_fallback();
    // Somebody waits: leave time to fall back on what is at hand.
    if (fallback_) timeout = std::clamp(first_wait / 2, milliseconds{1}, kLoadTimeout);
  }
  const bool answered = look(timeout);
  if (!answered && fallback_ && !stopping()) {
    log(LogLevel::kWarning, "rules: started from the snapshot " + options_.snapshot_file);
    hand_out(fallback_, file_.current_at(), "snapshot");
  }
  fallback_.reset();
  look_at_ = Clock::now() +
             (answered ? schedule_.after_answer(random()) : schedule_.after_failure(random()));
  const std::lock_guard lock(mutex_);
  first_round_done_ = true;
  first_round_over_.notify_all();
}

/// The last good rule set, as it was when somebody last had it: what a first load is compared with,
/// so that a restart does not let in what a reload would refuse.
void RefreshLoop::build_fallback() {
  try {
    Result<std::optional<OfferedRules>> offered = file_.look();
    Status status = offered.status();
    if (status.ok() && offered.value()) {
      auto built = RuleSet::build(std::move(offered.value()->spec), build_options_);
      if (built.ok()) fallback_ = built.value();
      status = built.status();
    }
    if (!status.ok() && status.code() != StatusCode::kNotFound) {
      log(LogLevel::kWarning, "rules: the snapshot is not used: " + status.text());
    }
  } catch (const std::exception& failure) {
    log(LogLevel::kWarning, std::string("rules: the snapshot is not used: ") + failure.what());
  }
}

bool RefreshLoop::look(milliseconds timeout) {
  const bool announced = std::exchange(announced_, false);
  bool changed = false;
  Status status;
  try {
    status = look_once(timeout, changed);
  } catch (const std::exception& failure) {
    // Out of memory, most likely; the host must not die of it.
    status = Status::error(StatusCode::kInternal, std::string("rules: ") + failure.what(), true);
  }
  if (stopping()) return status.ok();
  if (!status.ok()) note_failure(status);
  if (changed && !announced && listener_) listener_->found_by_polling();
  return status.ok();
}

Status RefreshLoop::look_once(milliseconds timeout, bool& changed) {
  Result<std::optional<OfferedRules>> offered = offer_of_source(timeout);
  if (!offered.ok()) return offered.status();
  if (!offered.value()) {
    still_current();
    return {};
  }
  if (stopping()) return {};
  changed = current_ != nullptr;
  return take(*std::move(offered).value());
}

Result<std::optional<OfferedRules>> RefreshLoop::offer_of_source(milliseconds timeout) {
  if (from_postgres()) return postgres_.look({Clock::now() + timeout, events_.stop});
  return file_.look();
}

Status RefreshLoop::take(OfferedRules offered) {
  auto built = RuleSet::build(std::move(offered.spec), build_options_);
  if (!built.ok()) return built.status();
  const std::shared_ptr<const RuleSet>& last = current_ ? current_ : fallback_;
  const ReloadJudgement judgement =
      judge_reload(last ? std::optional(size_of(*last)) : std::nullopt, size_of(*built.value()),
                   {options_.shrink_refused_below, options_.accept_any_shrink});
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
  hand_out(std::move(built).value(), offered.current_at, from_postgres() ? "postgres" : "snapshot");
  if (from_postgres()) publish();
  return {};
}

void RefreshLoop::hand_out(std::shared_ptr<const RuleSet> set, Clock::time_point current_at,
                           std::string_view source) {
  current_ = std::move(set);
  sink_(current_);
  {
    const std::lock_guard lock(mutex_);
    state_.version = current_->version();
    state_.rule_count = current_->rules().size();
    ++state_.reloads;
    state_.source = source;
    current_at_ = current_at;
    // A snapshot that stands in for PostgreSQL does not make its failure good.
    if (from_postgres() == (source == "postgres")) state_.last_error.clear();
  }
  log(LogLevel::kInfo, "rules: version " + std::to_string(current_->version()) + " from " +
                           std::string(source) + ": " + std::to_string(current_->rules().size()) +
                           " rules, " + std::to_string(current_->campaigns().size()) +
                           " campaigns");
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
    state_.last_error.clear();
  }
  if (!from_postgres() || options_.snapshot_file.empty()) return;
  if (published_) {
    touch_snapshot(options_.snapshot_file);
  } else {
    publish();
  }
}

void RefreshLoop::publish() {
  if (options_.snapshot_file.empty()) return;
  const Status status = write_snapshot(options_.snapshot_file, spec_of(*current_));
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

void RefreshLoop::listen() {
  if (!listener_ || stopping()) return;
  const auto due = listener_->connect_at();
  if (!due || Clock::now() < *due) return;
  const Status status = listener_->connect({Clock::now() + kListenTimeout, events_.stop}, random());
  if (!status.ok()) return;
  // Changes made while nobody listened were not announced.
  announced_ = true;
  look_at_ = Clock::now();
}

bool RefreshLoop::wait() {
  const auto looked_at = Clock::now();
  while (true) {
    auto until = look_at_;
    if (listener_ && listener_->connect_at()) until = std::min(until, *listener_->connect_at());
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    const auto timeout = std::clamp(left, milliseconds{0}, milliseconds{3'600'000});
    std::array<pollfd, 3> polled{pollfd{events_.stop, POLLIN, 0}, pollfd{events_.wake, POLLIN, 0},
                                 pollfd{listener_ ? listener_->socket() : -1, POLLIN, 0}};
    (void)::poll(polled.data(), polled.size(), static_cast<int>(timeout.count()));
    if (polled[0].revents != 0) return false;
    if (polled[1].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(events_.wake, &count, sizeof count);
      announced_ = true;
      look_at_ = Clock::now();
    }
    if (polled[2].revents != 0 && listener_->take_notifications()) {
      announced_ = true;
      look_at_ = std::min(look_at_, std::max(looked_at + kLookGap, Clock::now()));
    }
    if (Clock::now() >= until || Clock::now() >= look_at_) return true;
  }
}

bool RefreshLoop::stopping() const {
  pollfd polled{events_.stop, POLLIN, 0};
  return ::poll(&polled, 1, 0) > 0;
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

}  // namespace fcap::config
