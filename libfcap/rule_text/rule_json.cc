#include "rule_text/rule_json.h"

#include <cstddef>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/mistakes.h"
#include "base/time_text.h"
#include "ledger/ids.h"
#include "rule_text/rule_words.h"

namespace fcap::rule_text {
namespace {

using ledger::kIdBytesMax;
using nlohmann::json;

// The format needs four levels; more is refused before it costs memory.
constexpr int kDepthMax = 8;

// Takes the members of one object, and reports what is wrong with them, and those nobody took.
class ObjectReader {
 public:
  ObjectReader(const json& object, std::string place, base::Mistakes& mistakes)
      : object_(object), place_(std::move(place)), mistakes_(mistakes) {}

  void wrong(std::string_view name, std::string_view what) {
    mistakes_.add(place_ + "." + std::string(name) + ": " + std::string(what));
  }

  // The member, if it is there and not null.
  const json* take(std::string_view name) {
    taken_.push_back(name);
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  std::optional<std::string> text(std::string_view name, bool required = false) {
    const json* member = take(name);
    if (member == nullptr) {
      if (required) wrong(name, "is missing");
      return std::nullopt;
    }
    if (!member->is_string()) {
      wrong(name, "must be a string");
      return std::nullopt;
    }
    return member->get<std::string>();
  }

  std::optional<std::string> id(std::string_view name, bool required = false) {
    std::optional<std::string> id = text(name, required);
    if (id && (id->empty() || id->size() > kIdBytesMax)) wrong(name, "must have 1 to 256 bytes");
    return id;
  }

  template <typename Words, typename T>
  void word(std::string_view name, const Words& words, T& value, bool required = false) {
    const std::optional<std::string> given = text(name, required);
    if (!given) return;
    if (const auto known = value_of(words, *given)) {
      value = *known;
    } else {
      wrong(name, "must be " + one_of(words));
    }
  }

  template <typename T>
  std::optional<T> whole(std::string_view name) {
    const json* member = take(name);
    if (member == nullptr) return std::nullopt;
    if (!member->is_number_unsigned() ||
        member->get<std::uint64_t>() > std::numeric_limits<T>::max()) {
      wrong(name,
            "must be a whole number from 0 to " + std::to_string(std::numeric_limits<T>::max()));
      return std::nullopt;
    }
    return member->get<T>();
  }

  std::optional<Instant> instant(std::string_view name) {
    const std::optional<std::string> given = text(name);
    if (!given) return std::nullopt;
    const std::optional<Instant> instant = base::parse_instant(*given);
    if (!instant) wrong(name, "must be an instant such as 2026-03-01T00:00:00Z");
    return instant;
  }

  bool flag(std::string_view name) {
    const json* member = take(name);
    if (member == nullptr) return false;
    if (!member->is_boolean()) {
      wrong(name, "must be true or false");
      return false;
    }
    return member->get<bool>();
  }

  void refuse_others() {
    for (const auto& [name, value] : object_.items()) {
      bool known = false;
      for (const std::string_view taken : taken_) known = known || taken == name;
      if (!known) wrong(name, "is not known here");
    }
  }

  [[nodiscard]] const std::string& place() const { return place_; }

 private:
  const json& object_;
  std::string place_;
  base::Mistakes& mistakes_;
  std::vector<std::string_view> taken_;
};

void read_window_length(ObjectReader& reader, Window& window) {
  const std::optional<std::string> given = reader.text("length", true);
  if (!given) return;
  if (const auto length = base::parse_length(*given)) {
    window.length = *length;
  } else {
    reader.wrong("length", "must be a number above zero with ms, s, m, h or d, such as 24h");
  }
}

// Units other than weeks have no use for it.
void read_week_start(ObjectReader& reader, Window& window) {
  std::chrono::weekday week_start = window.week_start;
  reader.word("week_start", kWeekdayWords, week_start);
  if (window.unit == CalendarUnit::kWeek) window.week_start = week_start;
}

void read_window(ObjectReader& rule_reader, base::Mistakes& mistakes, Window& window) {
  const json* member = rule_reader.take("window");
  if (member == nullptr) return rule_reader.wrong("window", "is missing");
  if (!member->is_object()) return rule_reader.wrong("window", "must be an object");
  ObjectReader reader(*member, rule_reader.place() + ".window", mistakes);
  const std::size_t before = mistakes.count();
  reader.word("kind", kWindowKindWords, window.kind, true);
  // Which other members belong here depends on the kind.
  if (mistakes.count() != before) return;
  switch (window.kind) {
    case Window::Kind::kSliding:
    case Window::Kind::kFixed:
      read_window_length(reader, window);
      break;
    case Window::Kind::kCalendar:
      reader.word("unit", kCalendarUnitWords, window.unit, true);
      if (auto zone = reader.id("time_zone")) window.time_zone = *std::move(zone);
      read_week_start(reader, window);
      break;
    case Window::Kind::kLifetime:
      break;
  }
  reader.refuse_others();
}

// "rules[3]", with the id where there is one, since nobody counts to 3000.
std::string place_of(std::string_view list, std::size_t index, const json& element) {
  std::string place = std::string(list) + "[" + std::to_string(index) + "]";
  const auto id = element.find("id");
  if (id != element.end() && id->is_string()) {
    place += " (" + id->dump(-1, ' ', false, json::error_handler_t::replace) + ")";
  }
  return place;
}

// None: what it is for cannot be told; anything else that is wrong with it is reported only.
std::optional<Rule> read_rule(const json& element, std::size_t index, base::Mistakes& mistakes) {
  ObjectReader reader(element, place_of("rules", index, element), mistakes);
  const std::size_t before = mistakes.count();
  Rule rule;
  rule.id = reader.id("id", true).value_or("");
  reader.word("scope", kScopeWords, rule.scope, true);
  rule.target = reader.id("target").value_or("");
  read_window(reader, mistakes, rule.window);
  const bool sound = mistakes.count() == before;
  const std::size_t so_far = mistakes.count();
  reader.word("event_type", kEventTypeWords, rule.event_type);
  rule.limit = reader.whole<std::uint32_t>("limit");
  rule.segment = reader.id("segment");
  rule.start = reader.instant("start");
  rule.end = reader.instant("end");
  reader.word("mode", kModeWords, rule.mode);
  reader.word("enforcement", kEnforcementWords, rule.enforcement);
  reader.refuse_others();
  if (mistakes.count() != so_far) rule.segment.reset();  // it may be what is wrong
  return sound ? std::optional(std::move(rule)) : std::nullopt;
}

void read_groups(ObjectReader& reader, std::vector<std::string>& groups) {
  const json* member = reader.take("groups");
  if (member == nullptr) return;
  if (!member->is_array()) return reader.wrong("groups", "must be an array of strings");
  for (const json& group : *member) {
    if (!group.is_string() || group.get_ref<const std::string&>().empty() ||
        group.get_ref<const std::string&>().size() > kIdBytesMax) {
      return reader.wrong("groups", "must be strings of 1 to 256 bytes");
    }
    groups.push_back(group.get<std::string>());
  }
}

Campaign read_campaign(const json& element, std::size_t index, base::Mistakes& mistakes) {
  ObjectReader reader(element, place_of("campaigns", index, element), mistakes);
  Campaign campaign;
  campaign.id = reader.id("id", true).value_or("");
  campaign.advertiser_id = reader.id("advertiser_id").value_or("");
  read_groups(reader, campaign.groups);
  campaign.deleted = reader.flag("deleted");
  reader.refuse_others();
  return campaign;
}

// Follows the parser and turns each rule and campaign into its struct as soon as it is complete,
// so that a million of them never stand in memory as JSON values.
class RuleSetReader {
 public:
  explicit RuleSetReader(base::Mistakes& mistakes) : mistakes_(mistakes) {}

  RuleSetSpec spec;

  // The parser's callback; false: the value is not kept.
  bool on_event(int depth, json::parse_event_t event, json& value) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        return on_start(depth, event);
      case json::parse_event_t::key:
        on_key(depth, value.get_ref<const std::string&>());
        return true;
      case json::parse_event_t::array_end:
        if (depth == 1) list_ = List::kNone;
        return on_element(depth, value);
      case json::parse_event_t::object_end:
      case json::parse_event_t::value:
        return on_element(depth, value);
    }
    return true;
  }

  void read_root(const json& root) {
    if (!root.is_object()) return mistakes_.add("the whole must be an object");
    ObjectReader reader(root, "", mistakes_);
    spec.version = reader.whole<std::uint64_t>("version").value_or(0);
    for (const std::string_view name : {"rules", "campaigns"}) {
      const json* list = reader.take(name);
      if (list != nullptr && !list->is_array()) reader.wrong(name, "must be an array");
    }
    // For people (name_in_rules_json()).
    const json* name = reader.take("name");
    if (name != nullptr && !name->is_string()) reader.wrong("name", "must be text");
    reader.refuse_others();
  }

 private:
  enum class List { kNone, kRules, kCampaigns };

  bool on_start(int depth, json::parse_event_t event) {
    if (depth >= kDepthMax) {
      if (!too_deep_) mistakes_.add("nested too deeply");
      too_deep_ = true;
      return false;
    }
    names_[static_cast<std::size_t>(depth) + 1].clear();
    if (depth == 1 && event == json::parse_event_t::array_start) {
      list_ = section_ == "rules"       ? List::kRules
              : section_ == "campaigns" ? List::kCampaigns
                                        : List::kNone;
      index_ = 0;
    }
    return true;
  }

  void on_key(int depth, const std::string& name) {
    if (depth > kDepthMax) return;
    auto& names = names_[static_cast<std::size_t>(depth)];
    for (const std::string& other : names) {
      if (other != name) continue;
      mistakes_.add(here() + "." + name + ": is given twice");
      return;
    }
    if (names.size() < kNamesMax) names.push_back(name);
    if (depth == 1) section_ = name;
  }

  bool on_element(int depth, const json& value) {
    if (depth != 2 || list_ == List::kNone) return true;
    const std::size_t index = index_++;
    if (!value.is_object()) {
      mistakes_.add(section_ + "[" + std::to_string(index) + "]: must be an object");
    } else if (list_ == List::kRules) {
      if (auto rule = read_rule(value, index, mistakes_)) spec.rules.push_back(*std::move(rule));
    } else {
      const std::size_t before = mistakes_.count();
      Campaign campaign = read_campaign(value, index, mistakes_);
      if (mistakes_.count() == before) spec.campaigns.push_back(std::move(campaign));
    }
    return false;
  }

  [[nodiscard]] std::string here() const {
    return list_ == List::kNone ? "" : section_ + "[" + std::to_string(index_) + "]";
  }

  // Longer lists of names are strange enough to be reported anyway.
  static constexpr std::size_t kNamesMax = 32;

  base::Mistakes& mistakes_;
  std::vector<std::string> names_[kDepthMax + 1];
  std::string section_;
  List list_ = List::kNone;
  std::size_t index_ = 0;
  bool too_deep_ = false;
};

// nlohmann's text without its exception's number.
std::string_view plain_text(std::string_view what) {
  const std::size_t end = what.find("] ");
  return end == std::string_view::npos ? what : what.substr(end + 2);
}

}  // namespace

Result<RuleSetSpec> parse_rules_json(std::string_view text) {
  RuleSetSpec sound;
  return parse_rules_json(text, sound);
}

Result<RuleSetSpec> parse_rules_json(std::string_view text, RuleSetSpec& sound) {
  base::Mistakes mistakes;
  RuleSetReader reader(mistakes);
  try {
    const json root = json::parse(
        text,
        [&reader](int depth, json::parse_event_t event, json& value) {
          return reader.on_event(depth, event, value);
        },
        /*allow_exceptions=*/true, /*ignore_comments=*/true);
    reader.read_root(root);
  } catch (const json::exception& failure) {
    mistakes.add(std::string(plain_text(failure.what())));
  } catch (const std::exception& failure) {
    return Status::error(StatusCode::kInternal, std::string("reading rules: ") + failure.what());
  }
  if (!mistakes.empty()) {
    sound = std::move(reader.spec);
    return Status::error(StatusCode::kInvalidArgument, mistakes.text("the rules are not valid:"));
  }
  return std::move(reader.spec);
}

std::string name_in_rules_json(std::string_view text) {
  const json root =
      json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (!root.is_object()) return {};
  const auto name = root.find("name");
  return name != root.end() && name->is_string() ? name->get<std::string>() : std::string();
}

}  // namespace fcap::rule_text
