#include "updater/settings/field_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "kafka/conf.h"

namespace fcap::updater {
namespace {

template <typename... Functions>
struct Overload : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overload(Functions...) -> Overload<Functions...>;

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string expected(const Field& field) {
  return "expected " + describe_kind(field);
}

ValueMistake set_integer(const Field& field, const IntegerKind& kind, std::string_view text,
                         Settings& settings) {
  const auto value = kind.bytes ? parse_bytes(text) : parse_number<std::int64_t>(text);
  if (!value || *value < kind.min || *value > kind.max) return expected(field);
  kind.at(settings) = *value;
  return std::nullopt;
}

ValueMistake set_share(const Field& field, const ShareKind& kind, std::string_view text,
                       Settings& settings) {
  const auto value = parse_number<double>(text);
  // Written so that not-a-number fails.
  if (!value || !(*value >= kind.min && *value <= kind.max)) return expected(field);
  kind.at(settings) = *value;
  return std::nullopt;
}

ValueMistake set_duration(const Field& field, const DurationKind& kind, std::string_view text,
                          Settings& settings) {
  const auto value = base::parse_length_or_zero(text);
  if (!value) return expected(field) + ", with its unit (ms, s, m, h or d), such as \"5s\"";
  if (*value < kind.min || *value > kind.max) return expected(field);
  kind.at(settings) = *value;
  return std::nullopt;
}

ValueMistake set_flag(const Field& field, const FlagKind& kind, std::string_view text,
                      Settings& settings) {
  if (text != "true" && text != "false") return expected(field);
  kind.at(settings) = text == "true";
  return std::nullopt;
}

ValueMistake set_words(const Field& field, const TextKind& kind, std::string_view text,
                       Settings& settings) {
  if (kind.required && text.empty()) return expected(field);
  if (!kind.when_several.empty() && text.find(',') != std::string_view::npos) {
    return std::string(kind.when_several);
  }
  kind.at(settings) = text;
  return std::nullopt;
}

ValueMistake set_list(const Field& field, const ListKind& kind, std::vector<std::string> items,
                      Settings& settings) {
  if (items.size() < kind.items_min) return expected(field);
  if (std::ranges::any_of(items, &std::string::empty)) return "an item is empty";
  kind.at(settings) = std::move(items);
  return std::nullopt;
}

ValueMistake set_map_from_json(const MapKind& kind, const nlohmann::json& value,
                               Settings& settings) {
  if (!value.is_object()) return "expected an object of strings";
  std::map<std::string, std::string> entries;
  for (const auto& [name, entry] : value.items()) {
    if (entry.is_string()) {
      entries[name] = entry.get<std::string>();
    } else if (entry.is_number() || entry.is_boolean()) {
      entries[name] = entry.dump();
    } else {
      return fmt::format("\"{}\" is neither text, number, true nor false", name);
    }
  }
  kind.at(settings) = std::move(entries);
  return std::nullopt;
}

ValueMistake set_map_from_text(const MapKind& kind, std::string_view text, Settings& settings) {
  if (text.starts_with('{')) {
    const auto parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (parsed.is_discarded()) return "not valid JSON";
    return set_map_from_json(kind, parsed, settings);
  }
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) {
    return "expected name=value, or a JSON object";
  }
  kind.at(settings)[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  return std::nullopt;
}

ValueMistake set_choice_from_text(const Field& field, const ChoiceKind& kind, std::string_view text,
                                  Settings& settings) {
  const auto found = std::ranges::find(kind.words, text);
  if (found == kind.words.end()) return expected(field);
  kind.set(settings, static_cast<std::size_t>(found - kind.words.begin()));
  return std::nullopt;
}

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    items.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

ValueMistake set_list_from_json(const Field& field, const ListKind& kind,
                                const nlohmann::json& value, Settings& settings) {
  if (!value.is_array()) return expected(field);
  std::vector<std::string> items;
  for (const auto& item : value) {
    if (!item.is_string()) return expected(field);
    items.push_back(item.get<std::string>());
  }
  return set_list(field, kind, std::move(items), settings);
}

}  // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  struct BytesUnit {
    std::string_view name;
    std::int64_t factor;
  };
  static constexpr std::array<BytesUnit, 4> kUnits = {
      {{"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_number<std::int64_t>(text.substr(0, digits));
  const auto unit = std::ranges::find(kUnits, text.substr(digits), &BytesUnit::name);
  if (!number || unit == kUnits.end()) return std::nullopt;
  if (*number > std::numeric_limits<std::int64_t>::max() / unit->factor) return std::nullopt;
  return *number * unit->factor;
}

ValueMistake set_from_text(const Field& field, std::string_view text, Settings& settings) {
  return std::visit(
      Overload{
          [&](const IntegerKind& kind) { return set_integer(field, kind, text, settings); },
          [&](const ShareKind& kind) { return set_share(field, kind, text, settings); },
          [&](const DurationKind& kind) { return set_duration(field, kind, text, settings); },
          [&](const FlagKind& kind) { return set_flag(field, kind, text, settings); },
          [&](const TextKind& kind) { return set_words(field, kind, text, settings); },
          [&](const SecretKind& kind) -> ValueMistake {
            if (text.empty()) return "it is empty";
            kind.at(settings) = text;
            settings.secret_files.erase(std::string(field.name));
            return std::nullopt;
          },
          [&](const ListKind& kind) { return set_list(field, kind, split_commas(text), settings); },
          [&](const MapKind& kind) { return set_map_from_text(kind, text, settings); },
          [&](const ChoiceKind& kind) { return set_choice_from_text(field, kind, text, settings); },
      },
      field.kind);
}

ValueMistake set_from_json(const Field& field, const nlohmann::json& value, Settings& settings) {
  const auto text_of = [&value] { return value.get<std::string>(); };
  return std::visit(
      Overload{
          [&](const IntegerKind& kind) -> ValueMistake {
            if (value.is_number_integer()) return set_integer(field, kind, value.dump(), settings);
            if (kind.bytes && value.is_string()) {
              return set_integer(field, kind, text_of(), settings);
            }
            return expected(field);
          },
          [&](const ShareKind& kind) -> ValueMistake {
            if (!value.is_number()) return expected(field);
            return set_share(field, kind, value.dump(), settings);
          },
          [&](const DurationKind& kind) -> ValueMistake {
            return set_duration(field, kind, value.is_string() ? text_of() : value.dump(),
                                settings);
          },
          [&](const FlagKind& kind) -> ValueMistake {
            if (!value.is_boolean()) return expected(field);
            return set_flag(field, kind, value.dump(), settings);
          },
          [&](const TextKind& kind) -> ValueMistake {
            const bool several = value.is_array() && value.size() > 1;
            if (several && !kind.when_several.empty()) return std::string(kind.when_several);
            if (!value.is_string()) return expected(field);
            return set_words(field, kind, text_of(), settings);
          },
          [&](const SecretKind& /*kind*/) -> ValueMistake {
            return fmt::format(
                "a secret does not belong in this file; name a file that holds it with {}_file",
                field.name);
          },
          [&](const ListKind& kind) { return set_list_from_json(field, kind, value, settings); },
          [&](const MapKind& kind) { return set_map_from_json(kind, value, settings); },
          [&](const ChoiceKind& kind) -> ValueMistake {
            if (!value.is_string()) return expected(field);
            return set_choice_from_text(field, kind, text_of(), settings);
          },
      },
      field.kind);
}

nlohmann::ordered_json value_as_json(const Field& field, const Settings& settings) {
  Settings place = settings;  // a copy, because the table gives writable places only
  using Json = nlohmann::ordered_json;
  return std::visit(
      Overload{
          [&](const IntegerKind& kind) -> Json {
            const std::int64_t value = kind.at(place);
            if (kind.bytes && value >= 1024 && value % 1024 == 0) return format_bytes(value);
            return value;
          },
          [&](const ShareKind& kind) -> Json { return kind.at(place); },
          [&](const DurationKind& kind) -> Json { return base::format_length(kind.at(place)); },
          [&](const FlagKind& kind) -> Json { return kind.at(place); },
          [&](const TextKind& kind) -> Json { return kind.at(place); },
          [&](const SecretKind& kind) -> Json { return kind.at(place).empty() ? "" : "(set)"; },
          [&](const ListKind& kind) -> Json { return kind.at(place); },
          [&](const MapKind& kind) -> Json {
            Json object = Json::object();
            for (const auto& [name, value] : kind.at(place)) {
              object[name] = kafka::is_secret_property(name) ? "(set)" : value;
            }
            return object;
          },
          [&](const ChoiceKind& kind) -> Json { return kind.words[kind.get(settings)]; },
      },
      field.kind);
}

}  // namespace fcap::updater
