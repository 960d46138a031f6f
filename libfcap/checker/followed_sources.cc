#include "checker/followed_sources.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sources/segment_warnings.h"

namespace fcap::checker {
namespace {

constexpr std::chrono::seconds kFirstLoadWait{5};
constexpr std::size_t kWarningsLoggedMax = 20;

std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point until) {
  const auto left = until - std::chrono::steady_clock::now();
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(left),
                  std::chrono::milliseconds::zero());
}

}  // namespace

FollowedSources::FollowedSources(const CheckerOptions& options, const Gate& gate,
                                 std::function<void()> let_go)
    : options_(options), gate_(gate), retired_(std::move(let_go)) {}

Status FollowedSources::start() {
  const ThreadCallback& thread_started = options_.redis.thread_started;
  if (Status status = retired_.start(thread_started); !status.ok()) return status;
  const auto until = Clock::now() + kFirstLoadWait;
  const SegmentSourceOptions& segments = options_.segments;
  if (segments.postgres || !segments.directory.empty()) {
    segment_refresher_ = std::make_unique<sources::SegmentRefresher>(
        segments, options_.rules,
        [this](std::shared_ptr<const SegmentSet> set) { set_segments(std::move(set)); },
        options_.log, thread_started);
    if (Status status = segment_refresher_->start(); !status.ok()) return status;
  }
  if (Status status = start_rules(until); !status.ok()) return status;
  if (segment_refresher_ == nullptr) return {};
  const Status waited = segment_refresher_->wait_for_first_look(left_until(until));
  if (!waited.ok() && options_.log) {
    options_.log(
        LogLevel::kWarning,
        "no stored segments yet; until there are some, only segments that callers name count: " +
            waited.text());
  }
  return {};
}

Status FollowedSources::start_rules(Clock::time_point until) {
  const RuleSourceOptions& source = options_.rules;
  if (source.postgres.empty() && source.snapshot_file.empty()) return {};
  refresher_ = std::make_unique<sources::RuleRefresher>(
      source, RuleSet::Options{.retention = options_.retention},
      [this](std::shared_ptr<const RuleSet> rules) { set_rules(std::move(rules)); }, options_.log,
      options_.redis.thread_started);
  Status started = refresher_->start(left_until(until));
  if (started.ok() || started.code() == StatusCode::kInvalidArgument) return started;
  if (options_.log) {
    options_.log(LogLevel::kWarning,
                 "no rules yet; checks answer no_rules until there are some: " + started.text());
  }
  return {};
}

void FollowedSources::stop_following() noexcept {
  if (refresher_ != nullptr) refresher_->stop();
  if (segment_refresher_ != nullptr) segment_refresher_->stop();
}

void FollowedSources::set_rules(std::shared_ptr<const RuleSet> rules) noexcept {
  if (gate_.in_child()) return;  // a lock may be held by a thread that is not here
  retired_.destroy_when_unused(current_.publish(std::move(rules)));
  rules_set_at_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  rules_set_count_.fetch_add(1, std::memory_order_relaxed);
  warn_of_segments();
}

void FollowedSources::set_segments(std::shared_ptr<const SegmentSet> segments) noexcept {
  if (gate_.in_child()) return;  // as in set_rules()
  retired_.destroy_when_unused(current_.publish(std::move(segments)));
  segments_set_count_.fetch_add(1, std::memory_order_relaxed);
  warn_of_segments();
}

std::shared_ptr<const RuleSet> FollowedSources::rules() const noexcept {
  return gate_.in_child() ? nullptr : current_.get();
}

std::shared_ptr<const SegmentSet> FollowedSources::segments() const noexcept {
  return gate_.in_child() ? nullptr : current_.segments();
}

// Logs, once per swap, the segments that rules reference but no source provides.
void FollowedSources::warn_of_segments() const noexcept {
  const std::shared_ptr<const RuleSet> rules = current_.get();
  const std::shared_ptr<const SegmentSet> segments = current_.segments();
  if (!options_.log || rules == nullptr || segments == nullptr) return;
  try {
    const std::vector<std::string> warnings = sources::segment_warnings(*rules, *segments);
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

void FollowedSources::add_segment_stats(CheckerStats& stats) const noexcept {
  if (const std::shared_ptr<const SegmentSet> segments = current_.segments()) {
    stats.segments.version = segments->version();
    stats.segments.members = segments->memory().members;
    stats.segments.bytes = segments->memory().bytes();
  }
  stats.segments.reloads = segments_set_count_.load(std::memory_order_relaxed);
  if (segment_refresher_ == nullptr) return;
  try {
    stats.segments.reloads_failed = segment_refresher_->state().failed;
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the rest still stands
  }
}

std::chrono::milliseconds FollowedSources::age_of_given() const noexcept {
  const auto since = Clock::now() - Clock::time_point(Clock::duration(rules_set_at_.load()));
  return std::chrono::floor<std::chrono::milliseconds>(since);
}

void FollowedSources::add_stats(CheckerStats& stats) const noexcept {
  if (gate_.in_child()) return;
  const std::shared_ptr<const RuleSet> rules = current_.get();
  stats.rules.version = rules == nullptr ? 0 : rules->version();
  stats.rules.count = rules == nullptr ? 0 : rules->rules().size();
  stats.rules.reloads = rules_set_count_.load(std::memory_order_relaxed);
  add_segment_stats(stats);
  if (refresher_ != nullptr) {
    try {
      const sources::RefreshState state = refresher_->state();
      stats.rules.reloads_refused = state.refused;
      stats.rules.quarantined = state.quarantined_count;
      stats.rules.age = state.age;
    } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the rest still stands
    }
  } else if (rules != nullptr) {
    stats.rules.age = age_of_given();
  }
}

void FollowedSources::add_health(CheckerHealth& health) const {
  if (gate_.in_child()) return;
  if (const std::shared_ptr<const RuleSet> rules = current_.get()) {
    health.has_rules = true;
    health.rule_set_version = rules->version();
    health.rule_count = rules->rules().size();
    health.rules_source = "host";
    health.rule_set_age = age_of_given();
  } else {
    health.rules_source = "none";
  }
  if (refresher_ != nullptr) {
    sources::RefreshState state = refresher_->state();
    health.rules_source = std::move(state.source);
    health.rules_error = std::move(state.last_error);
    health.rules_quarantined = std::move(state.quarantined);
    health.rule_set_age = state.age;
  }
  if (const std::shared_ptr<const SegmentSet> segments = current_.segments()) {
    health.has_segments = true;
    health.segment_set_version = segments->version();
  }
  if (segment_refresher_ != nullptr) {
    health.segments_error = segment_refresher_->state().last_error;
  }
}

}  // namespace fcap::checker
