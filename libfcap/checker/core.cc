#include "checker/core.h"

#include <algorithm>
#include <bit>
#include <thread>
#include <utility>

#include "checker/callback_frame.h"
#include "config/segment_warnings.h"
#include "ledger/ids.h"

namespace fcap::checker {
namespace {

constexpr std::chrono::seconds kFirstLoadWait{5};
// How long, and how often looked at, until no check uses replaced segments any more.
constexpr std::chrono::seconds kLetGoWait{1};
constexpr std::chrono::milliseconds kLetGoPoll{1};
constexpr std::size_t kWarningsLoggedMax = 20;
constexpr std::chrono::seconds kDeadlineMax{60};
// How often the destructor looks whether the last caller and the last callback have left. They do
// not tell it, because then each check would have to look for a destructor.
constexpr std::chrono::microseconds kLeavePoll{50};

std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point until) {
  const auto left = until - std::chrono::steady_clock::now();
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(left),
                  std::chrono::milliseconds::zero());
}

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
  answer_queue_.start(options_.redis.thread_started);
}

Core::~Core() {
  closing_.store(true, std::memory_order_seq_cst);
  refresher_.reset();
  segment_refresher_.reset();
  // A call that began before may still be on its way to the store: a callback may start the next
  // check, and the store's threads run callbacks until the store has ended. A call that begins from
  // here on sees that the Checker is closing.
  while (!counters_.all_past(Counter::kCallsSubmitted)) std::this_thread::sleep_for(kLeavePoll);
  // The store that the Checker made ends here and completes all it has; a store of the host's may
  // live on, and what it still has is answered below.
  store_.reset();
  answer_queue_.stop();
  answer_pending();
  while (any_pending() || !counters_.all_past(Counter::kCallsEnded)) {
    std::this_thread::sleep_for(kLeavePoll);
  }
}

Status Core::start_sources() {
  const auto until = Clock::now() + kFirstLoadWait;
  const SegmentSourceOptions& segments = options_.segments;
  if (segments.postgres || !segments.directory.empty()) {
    segment_refresher_ = std::make_unique<config::SegmentRefresher>(
        segments, options_.rules,
        [this](std::shared_ptr<const SegmentSet> set) { take_segments(std::move(set)); },
        options_.log);
    if (Status status = segment_refresher_->start(); !status.ok()) return status;
  }
  if (Status status = start_rules(until); !status.ok()) return status;
  if (segment_refresher_ == nullptr) return {};
  const Status waited = segment_refresher_->wait_for_first_look(left_until(until));
  if (!waited.ok() && options_.log) {
    options_.log(LogLevel::kWarning,
                 "only callers know who is in a segment until there are some: " + waited.text());
  }
  return {};
}

Status Core::start_rules(Clock::time_point until) {
  const RuleSourceOptions& source = options_.rules;
  if (source.postgres.empty() && source.snapshot_file.empty()) return {};
  refresher_ = std::make_unique<config::RuleRefresher>(
      source, RuleSet::Options{.retention = options_.retention},
      [this](std::shared_ptr<const RuleSet> rules) { set_rules(std::move(rules)); }, options_.log);
  Status started = refresher_->start(left_until(until));
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
  if (closing_.load(std::memory_order_seq_cst)) return Reason::kShutdown;
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
  let_go_of_old();
  warn_of_segments();
}

std::shared_ptr<const RuleSet> Core::rules() const noexcept {
  return fork_guard_.in_child() ? nullptr : current_rules_.get();
}

void Core::set_segments(std::shared_ptr<const SegmentSet> segments) noexcept {
  if (fork_guard_.in_child()) return;  // as in set_rules()
  (void)swap_segments(std::move(segments));
}

std::shared_ptr<const SegmentSet> Core::swap_segments(
    std::shared_ptr<const SegmentSet> segments) noexcept {
  std::shared_ptr<const SegmentSet> previous = current_rules_.publish(std::move(segments));
  segments_set_count_.fetch_add(1, std::memory_order_relaxed);
  let_go_of_old();
  warn_of_segments();
  return previous;
}

/// What the refresher has read. Ten million members take a while to free, so that the thread which
/// does it should be this one and not that of a check: it waits for those that run.
void Core::take_segments(std::shared_ptr<const SegmentSet> segments) noexcept {
  const std::shared_ptr<const SegmentSet> previous = swap_segments(std::move(segments));
  const auto until = Clock::now() + kLetGoWait;
  while (previous.use_count() > 1 && Clock::now() < until && !closing_.load()) {
    std::this_thread::sleep_for(kLetGoPoll);
    let_go_of_old();
  }
}

std::shared_ptr<const SegmentSet> Core::segments() const noexcept {
  return fork_guard_.in_child() ? nullptr : current_rules_.segments();
}

/// Scratch that rests would keep the previous rules and segments alive until its next use.
void Core::let_go_of_old() noexcept {
  scratches_->for_each_free([](Scratch& scratch) { scratch.held = {}; });
}

/// Says once a swap which segments rules name that are not stored.
void Core::warn_of_segments() const noexcept {
  const std::shared_ptr<const RuleSet> rules = current_rules_.get();
  const std::shared_ptr<const SegmentSet> segments = current_rules_.segments();
  if (!options_.log || rules == nullptr || segments == nullptr) return;
  try {
    const std::vector<std::string> warnings = config::segment_warnings(*rules, *segments);
    const std::size_t shown = std::min(warnings.size(), kWarningsLoggedMax);
    for (std::size_t i = 0; i < shown; ++i) {
      options_.log(LogLevel::kWarning, "segments: " + warnings[i]);
    }
    if (shown == warnings.size()) return;
    options_.log(LogLevel::kWarning,
                 "segments: and " + std::to_string(warnings.size() - shown) + " more warnings");
  } catch (...) {  // NOLINT(bugprone-empty-catch): warnings are not worth the swap
  }
}

void Core::add_segment_stats(CheckerStats& stats) const noexcept {
  if (const std::shared_ptr<const SegmentSet> segments = current_rules_.segments()) {
    stats.segment_set_version = segments->version();
    stats.segment_members = segments->memory().members;
    stats.segment_bytes = segments->memory().bytes();
  }
  stats.segment_reloads = segments_set_count_.load(std::memory_order_relaxed);
  if (segment_refresher_ == nullptr) return;
  try {
    stats.segment_reloads_failed = segment_refresher_->state().failed;
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the rest still stands
  }
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
  add_segment_stats(stats);
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
