#include "cli/simulate/limit_sweep.h"

#include <charconv>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fcap::cli {
namespace {

constexpr std::uint32_t kStepsMax = 50;

Status wrong_sweep(std::string why) {
  return Status::error(StatusCode::kInvalidArgument,
                       "--sweep: " + std::move(why) +
                           "; write limit=FROM..TO or RULE:limit=FROM..TO, such as limit=1..10");
}

bool read_number(std::string_view text, std::uint32_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

bool is_swept(const LimitSweep& sweep, const Rule& rule) {
  if (!sweep.rule.empty()) return rule.id == sweep.rule;
  return rule.mode == Rule::Mode::kEnforce && rule.event_type == EventType::kImpression &&
         rule.limit.value_or(0) > 0;
}

}  // namespace

Result<LimitSweep> parse_sweep(std::string_view text) {
  constexpr std::string_view kWhat = "limit=";
  const auto what = text.rfind(kWhat);
  if (what == std::string_view::npos || (what > 0 && text[what - 1] != ':')) {
    return wrong_sweep(fmt::format("\"{}\" names no limits", text));
  }
  LimitSweep sweep;
  if (what > 0) sweep.rule = text.substr(0, what - 1);
  const std::string_view range = text.substr(what + kWhat.size());
  const auto dots = range.find("..");
  if (dots == std::string_view::npos || !read_number(range.substr(0, dots), sweep.first) ||
      !read_number(range.substr(dots + 2), sweep.last) || sweep.last < sweep.first) {
    return wrong_sweep(fmt::format("\"{}\" is not a range of limits", range));
  }
  if (sweep.last - sweep.first >= kStepsMax) {
    return wrong_sweep(fmt::format("at most {} limits can be compared", kStepsMax));
  }
  return sweep;
}

Result<std::vector<NamedRules>> rule_sets_of(const LimitSweep& sweep, const NamedRules& base) {
  std::vector<NamedRules> all;
  for (std::uint32_t limit = sweep.first; limit <= sweep.last; ++limit) {
    const auto& rules = base.rules->rules();
    const auto& campaigns = base.rules->campaigns();
    RuleSetSpec spec{.version = base.rules->version(),
                     .rules = {rules.begin(), rules.end()},
                     .campaigns = {campaigns.begin(), campaigns.end()}};
    std::size_t swept = 0;
    for (Rule& rule : spec.rules) {
      if (!is_swept(sweep, rule)) continue;
      rule.limit = limit;
      ++swept;
    }
    if (swept == 0) {
      return wrong_sweep(sweep.rule.empty() ? "no rule of the set caps impressions"
                                            : fmt::format("there is no rule \"{}\"", sweep.rule));
    }
    auto built = RuleSet::build(std::move(spec), {.retention = base.rules->retention()});
    if (!built.ok()) return built.status();
    all.push_back({.name = fmt::format("limit {}", limit),
                   .rules = std::move(built).value(),
                   .sweep_limit = limit});
  }
  return all;
}

}  // namespace fcap::cli
