#include <atomic>
#include <string>
#include <utility>

#include <fcap/rule_set.h>

#include "rules/compile.h"
#include "rules/compiled_rules.h"
#include "rules/rule_set_access.h"
#include "rules/shared_spec.h"

namespace fcap {
namespace {

constexpr std::size_t kMistakesReportedMax = 10'000;
constexpr std::size_t kWarningsMax = 1'000;
constexpr std::chrono::milliseconds kRetentionMax = std::chrono::days{3660};
constexpr std::size_t kItemsMax = std::size_t{1} << 30;

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    if (!out.empty()) out.push_back('\n');
    out.append(line);
  }
  return out;
}

}  // namespace

struct RuleSet::RuleSetParts {
  rules::SharedSpec spec;
  Options options;
  rules::CompiledRules compiled;  // has views into `spec`
  std::vector<std::string> warnings;
  std::vector<std::string> quarantined;
};

RuleSet::RuleSet(std::unique_ptr<RuleSetParts> parts) : parts_(std::move(parts)) {}
RuleSet::~RuleSet() = default;

Result<std::shared_ptr<const RuleSet>> RuleSet::build(RuleSetSpec spec, const Options& options) {
  return rules::RuleSetAccess::build(rules::shared(std::move(spec)), options);
}

Result<std::shared_ptr<const RuleSet>> rules::RuleSetAccess::build(
    SharedSpec spec, const RuleSet::Options& options) {
  static std::atomic<std::uint64_t> next_serial{1};
  if (options.retention <= std::chrono::milliseconds{0} || options.retention > kRetentionMax) {
    return Status::error(StatusCode::kInvalidArgument,
                         "retention: " + std::to_string(options.retention.count()) +
                             " ms is not above zero and at most 3660 days");
  }
  if (spec.rules.size() > kItemsMax || spec.campaigns.size() > kItemsMax) {
    return Status::error(StatusCode::kInvalidArgument, "more than 2^30 rules or campaigns");
  }
  auto parts = std::make_unique<RuleSet::RuleSetParts>();
  parts->spec = std::move(spec);
  parts->options = options;
  if (options.quarantine) parts->quarantined = rules::quarantine(parts->spec, options.retention);
  rules::Texts mistakes(kMistakesReportedMax);
  rules::find_mistakes(parts->spec, options.retention, mistakes);
  parts->compiled = rules::compile(parts->spec, options.retention, mistakes);
  if (!mistakes.empty()) {
    return Status::error(StatusCode::kInvalidArgument, joined(mistakes.take()));
  }
  parts->compiled.serial = next_serial.fetch_add(1, std::memory_order_relaxed);
  rules::Texts warnings(kWarningsMax);
  rules::find_warnings(parts->spec, parts->compiled, warnings);
  parts->warnings = warnings.take();
  return std::shared_ptr<const RuleSet>(new RuleSet(std::move(parts)));
}

std::uint64_t RuleSet::version() const noexcept {
  return parts_->spec.version;
}
std::chrono::milliseconds RuleSet::retention() const noexcept {
  return parts_->options.retention;
}
const SharedList<Rule>& RuleSet::rules() const noexcept {
  return parts_->spec.rules;
}
const SharedList<Campaign>& RuleSet::campaigns() const noexcept {
  return parts_->spec.campaigns;
}
const std::vector<std::string>& RuleSet::warnings() const noexcept {
  return parts_->warnings;
}
const std::vector<std::string>& RuleSet::quarantined() const noexcept {
  return parts_->quarantined;
}
const rules::CompiledRules& rules::RuleSetAccess::compiled(const RuleSet& set) noexcept {
  return set.parts_->compiled;
}

}  // namespace fcap
