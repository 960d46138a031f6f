#include "checker/checker_options_check.h"

#include <chrono>
#include <string>
#include <string_view>

#include "ledger/ids.h"
#include "redis/config_record.h"
#include "sources/segment_refresher.h"

namespace fcap::checker {
namespace {

class Complaints {
 public:
  void require(bool condition, std::string_view text) {
    if (condition) return;
    if (!text_.empty()) text_ += '\n';
    text_ += text;
  }

  [[nodiscard]] Status status() && {
    if (text_.empty()) return {};
    return Status::error(StatusCode::kInvalidArgument, std::move(text_));
  }

 private:
  std::string text_;
};

}  // namespace

Status check_options(const CheckerOptions& options) {
  using namespace std::chrono_literals;
  Complaints complaints;
  const Status prefix = redis::check_key_prefix(options.key_prefix);
  complaints.require(prefix.ok(), prefix.text());
  complaints.require(options.retention >= 1h && options.retention <= std::chrono::days{400},
                     "retention: must lie between 1 hour and 400 days");
  complaints.require(options.deadline >= 100us && options.deadline <= 60s,
                     "deadline: must lie between 100 microseconds and 60 seconds");
  for (const std::string& id : options.null_user_ids) {
    complaints.require(id.size() <= ledger::kIdBytesMax,
                       "null_user_ids: an id has more than 256 bytes");
  }
  const LocalOptions& local = options.local;
  complaints.require(local.shown_max <= 10'000'000, "local.shown_max: must be at most 10 million");
  complaints.require(local.shown_for >= 1s && local.shown_for <= 1h,
                     "local.shown_for: must lie between 1 second and 1 hour");
  complaints.require(local.cached_caps_max <= 100'000'000,
                     "local.cached_caps_max: must be at most 100 million");
  complaints.require(local.cached_caps_for >= 1s && local.cached_caps_for <= 24h,
                     "local.cached_caps_for: must lie between 1 second and 24 hours");
  const RuleSourceOptions& rules = options.rules;
  complaints.require(rules.poll_interval >= 1s && rules.poll_interval <= 1h,
                     "rules.poll_interval: must lie between 1 second and 1 hour");
  complaints.require(rules.shrink_refused_below >= 0 && rules.shrink_refused_below <= 1,
                     "rules.shrink_refused_below: must lie between 0 and 1");
  const Status segments = sources::check_segment_options(options.segments, rules);
  complaints.require(segments.ok(), segments.text());
  return std::move(complaints).status();
}

}  // namespace fcap::checker
