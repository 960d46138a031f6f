#include "checker/core.h"

#include <algorithm>
#include <bit>
#include <thread>
#include <utility>

#include "checker/callback_frame.h"
#include "ledger/ids.h"

namespace fcap::checker {
namespace {

constexpr std::chrono::seconds kFirstRulesWait{5};
constexpr std::chrono::seconds kDeadlineMax{60};
// How often the destructor looks whether the last caller and the last callback have left. They do
// not tell it, because then each check would have to look for a destructor.
constexpr std::chrono::microseconds kLeavePoll{50};

std::uint64_t count_of(const std::shared_ptr<const RuleSet>& rules) {
  return rules == nullptr ? 0 : rules->rules().size();
}

}  // namespace

Core::Core(CheckerOptions options, std::shared_ptr<Store> store)
    : options_(std::move(options)),
      null_user_ids_(options_.null_user_ids.begin(), options_.null_user_ids.end()),
      scratches_(Pool<Scratch>::make()),
      read_groups_(Pool<ReadGroup>::make()),
      async_reads_(Pool<AsyncRead>::make()),
      store_(std::move(store)) {
  const LocalOptions& local = options_.local;
  if (local.shown_max > 0) {
    shown_ = std::make_unique<ShownEvents>(
        ShownEvents::Limits{.events_max = local.shown_max, .kept_for = local.shown_for});
  }
  if (local.cached_caps_max > 0) {
    cache_ = std::make_unique<NegativeCache>(NegativeCache::Limits{
        .verdicts_max = local.cached_caps_max, .kept_for = local.cached_caps_for});
  }
  answer_queue_.start();
}

Core::~Core() {
  closing_.store(true, std::memory_order_release);
  refresher_.reset();
  // The store that the Checker made ends here and completes all it has; a store of the host's may
  // live on, and what it still has is answered below.
  store_.reset();
  answer_queue_.stop();
  answer_pending();
  const auto calls_inside = [this] {
    const std::uint64_t ended = counters_.sum(Counter::kCallsEnded);
    return counters_.sum(Counter::kCallsBegun) != ended;
  };
  while (any_pending() || calls_inside()) std::this_thread::sleep_for(kLeavePoll);
}

Status Core::start_rules() {
  const RuleSourceOptions& source = options_.rules;
  if (source.postgres.empty() && source.snapshot_file.empty()) return {};
  refresher_ = std::make_unique<config::RuleRefresher>(
      source, RuleSet::Options{.retention = options_.retention},
      [this](std::shared_ptr<const RuleSet> rules) { set_rules(std::move(rules)); }, options_.log);
  Status started = refresher_->start(kFirstRulesWait);
  if (started.ok() || started.code() == StatusCode::kInvalidArgument) return started;
  if (options_.log) {
    options_.log(LogLevel::kWarning,
                 "no rules yet, checks answer no_rules until there are some: " + started.text());
  }
  return {};
}

bool Core::must_leak() const noexcept {
  return fork_guard_.in_child() || CallbackFrame::inside(this);
}

Reason Core::refuse_user(std::string_view user) const noexcept {
  if (closing_.load(std::memory_order_relaxed)) return Reason::kShutdown;
  if (user.empty() || null_user_ids_.find(user) != null_user_ids_.end()) return Reason::kNoUser;
  if (user.size() > ledger::kIdBytesMax) return Reason::kInvalid;
  if (!have_rules_.load(std::memory_order_acquire)) return Reason::kNoRules;
  return Reason::kPassed;
}

Reason Core::refuse_blocking() const noexcept {
  return CallbackFrame::inside(this) ? Reason::kReentrant : Reason::kPassed;
}

bool Core::allows(Reason reason) const noexcept {
  if (reason == Reason::kNoUser) return options_.no_user == CheckerOptions::NoUserPolicy::kAllow;
  return options_.fail_open;
}

Instant Core::instant_of(const CheckOptions& options) const {
  if (options.now) return *options.now;
  if (options_.clock) return options_.clock();
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

Core::Clock::time_point Core::deadline_of(const CheckOptions& options) const noexcept {
  const std::chrono::microseconds wanted = options.deadline.value_or(options_.deadline);
  return Clock::now() + std::clamp<std::chrono::microseconds>(
                            wanted, std::chrono::microseconds::zero(), kDeadlineMax);
}

void Core::note_undecodable() noexcept {
  // Said at the first, second, fourth, eighth… so that a damaged population cannot flood the log.
  const auto times = undecodable_logged_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!options_.log || !std::has_single_bit(times)) return;
  try {
    options_.log(LogLevel::kError, "a user's record could not be decoded; such records so far: " +
                                       std::to_string(times));
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line is not worth a check
  }
}

void Core::count_reason(Reason reason) noexcept {
  switch (reason) {
    case Reason::kPassed:
    case Reason::kCapped:
    case Reason::kShutdown:
    case Reason::kReentrant:
      return;
    case Reason::kNoUser:
      return counters_.add(Counter::kNoUser);
    case Reason::kNoRules:
      return counters_.add(Counter::kNoRules);
    case Reason::kTimeout:
      return counters_.add(Counter::kTimeouts);
    case Reason::kUnavailable:
      return counters_.add(Counter::kUnavailable);
    case Reason::kBreakerOpen:
      return counters_.add(Counter::kBreakerOpen);
    case Reason::kOverloaded:
      return counters_.add(Counter::kOverloaded);
    case Reason::kUndecodable:
      return counters_.add(Counter::kUndecodable);
    case Reason::kForked:
      return counters_.add(Counter::kForked);
    case Reason::kInvalid:
      return counters_.add(Counter::kInvalid);
  }
}

void Core::count_result(const CheckResult& result) noexcept {
  std::uint64_t allowed = 0;
  bool invalid = false;
  for (const Verdict& verdict : result.verdicts) {
    if (verdict.allowed) ++allowed;
    invalid = invalid || verdict.reason == Reason::kInvalid;
  }
  counters_.add(Counter::kCandidates, result.verdicts.size());
  counters_.add(Counter::kAllowed, allowed);
  counters_.add(Counter::kCapped, result.verdicts.size() - allowed);
  count_reason(result.reason);
  if (invalid && result.reason != Reason::kInvalid) counters_.add(Counter::kInvalid);
}

void Core::set_rules(std::shared_ptr<const RuleSet> rules) noexcept {
  if (fork_guard_.in_child()) return;  // a lock may be held by a thread that is not here
  const bool any = rules != nullptr;
  const std::shared_ptr<const RuleSet> previous = current_rules_.publish(std::move(rules));
  have_rules_.store(any, std::memory_order_release);
  rules_set_at_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  rules_set_count_.fetch_add(1, std::memory_order_relaxed);
  // Scratch that rests would keep the previous set alive until its next use.
  scratches_->for_each_free([](Scratch& scratch) { scratch.held = {}; });
}

std::shared_ptr<const RuleSet> Core::rules() const noexcept {
  return fork_guard_.in_child() ? nullptr : current_rules_.get();
}

CheckerStats Core::stats() const noexcept {
  CheckerStats stats;
  const std::uint64_t answered = counters_.sum(Counter::kChecksAnswered);
  stats.checks = counters_.sum(Counter::kChecks);
  stats.pending = stats.checks - answered;
  stats.candidates = counters_.sum(Counter::kCandidates);
  stats.allowed = counters_.sum(Counter::kAllowed);
  stats.capped = counters_.sum(Counter::kCapped);
  stats.shadow_capped = counters_.sum(Counter::kShadowCapped);
  stats.no_user = counters_.sum(Counter::kNoUser);
  stats.no_rules = counters_.sum(Counter::kNoRules);
  stats.timeouts = counters_.sum(Counter::kTimeouts);
  stats.unavailable = counters_.sum(Counter::kUnavailable);
  stats.breaker_open = counters_.sum(Counter::kBreakerOpen);
  stats.overloaded = counters_.sum(Counter::kOverloaded);
  stats.undecodable = counters_.sum(Counter::kUndecodable);
  stats.forked = counters_.sum(Counter::kForked);
  stats.invalid = counters_.sum(Counter::kInvalid);
  stats.unknown_frames = counters_.sum(Counter::kUnknownFrames);
  stats.shown_noted = counters_.sum(Counter::kShownNoted);
  stats.shown_confirmed = counters_.sum(Counter::kShownConfirmed);
  stats.shown_displaced = counters_.sum(Counter::kShownDisplaced);
  stats.cached_checks = counters_.sum(Counter::kCachedChecks);
  stats.cached_verdicts = counters_.sum(Counter::kCachedVerdicts);
  stats.cached_caps = cache_ == nullptr ? 0 : cache_->size();
  if (fork_guard_.in_child()) return stats;  // no locks: their holders may not exist here

  stats.shown_kept = shown_ == nullptr ? 0 : shown_->size();
  const std::shared_ptr<const RuleSet> rules = current_rules_.get();
  stats.rule_set_version = rules == nullptr ? 0 : rules->version();
  stats.rule_count = count_of(rules);
  stats.rule_reloads = rules_set_count_.load(std::memory_order_relaxed);
  if (refresher_ != nullptr) {
    try {
      const config::RefreshState state = refresher_->state();
      stats.rule_reloads_refused = state.refused;
      stats.rule_set_age = state.age;
    } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the rest still stands
    }
  } else if (rules != nullptr) {
    const auto since = Clock::now() - Clock::time_point(Clock::duration(rules_set_at_.load()));
    stats.rule_set_age = std::chrono::floor<std::chrono::milliseconds>(since);
  }
  return stats;
}

}  // namespace fcap::checker
