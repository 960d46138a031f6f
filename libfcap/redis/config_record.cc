#include "redis/config_record.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/outside_text.h"

namespace fcap::redis {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* kCreated = "created_ms";
constexpr const char* kMissingBefore = "missing_before_ms";
constexpr const char* kMissingSlots = "missing_slots";
constexpr std::size_t kPrefixBytesMax = 64;
constexpr std::int64_t kMillisecondsMax = std::int64_t{1} << 53U;

Status corrupt(const std::string& text) {
  return Status::error(StatusCode::kCorrupt, "the recorded configuration " + text);
}

Status refuse_format(std::int64_t format) {
  const std::string has = "has write_format " + std::to_string(format);
  return Status::error(
      StatusCode::kRefused,
      "the recorded configuration " +
          (format < kRecordFormat
               ? has + ", from before the first release: delete it"
               : has + ", which this release cannot read: install the release that wrote it"));
}

// Any program may have written the value, and dump() recurses into nested values. A value that is
// nested too deeply is refused, so that the stack does not overflow.
json parse_shallow(std::string_view text) {
  constexpr int kDepthMax = 32;
  bool deep = false;
  json value = json::parse(
      text,
      [&deep](int depth, json::parse_event_t /*event*/, const json& /*parsed*/) {
        deep = deep || depth > kDepthMax;
        return !deep;
      },
      false);
  return deep ? json() : value;
}

std::string dump(const json& value) {
  // Ids are bytes. Invalid UTF-8 in them is replaced.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<std::int64_t> number_in(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMillisecondsMax) {
    return std::nullopt;
  }
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number > kMillisecondsMax) return std::nullopt;
  return number;
}

std::optional<std::int64_t> number(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? std::nullopt : number_in(*found);
}

bool read_ids(const json& object, std::vector<std::string>& ids) {
  const auto found = object.find("null_user_ids");
  if (found == object.end() || !found->is_array()) return false;
  for (const json& id : *found) {
    if (!id.is_string()) return false;
    ids.push_back(id.get<std::string>());
  }
  return true;
}

bool read_missing(const json& object, ConfigRecord::MissingBefore& missing) {
  const auto found = object.find(kMissingBefore);
  if (found == object.end()) return true;
  if (!found->is_object()) return false;
  for (const auto& [topic, partitions] : found->items()) {
    if (!partitions.is_object()) return false;
    for (const auto& [partition, instant] : partitions.items()) {
      const auto before_ms = number_in(instant);
      if (!before_ms) return false;
      missing[topic][partition] = instant_from_ms(*before_ms);
    }
  }
  return true;
}

MissingEvents* find_missing(ConfigRecord::MissingBefore& missing, const std::string& topic,
                            const std::string& partition) {
  const auto partitions = missing.find(topic);
  if (partitions == missing.end()) return nullptr;
  const auto events = partitions->second.find(partition);
  return events == partitions->second.end() ? nullptr : &events->second;
}

// Slots are named beside the instant that they belong to. Those of another instant, or of a
// partition without one, say nothing.
bool read_missing_slots(const json& object, ConfigRecord::MissingBefore& missing) {
  const auto found = object.find(kMissingSlots);
  if (found == object.end()) return true;
  if (!found->is_object()) return false;
  for (const auto& [topic, partitions] : found->items()) {
    if (!partitions.is_object()) return false;
    for (const auto& [partition, by_instant] : partitions.items()) {
      if (!by_instant.is_object()) return false;
      for (const auto& [instant_ms, text] : by_instant.items()) {
        if (!text.is_string()) return false;
        auto slots = SlotSet::read(text.get_ref<const std::string&>());
        if (!slots || slots->empty()) return false;
        MissingEvents* const events = find_missing(missing, topic, partition);
        if (events == nullptr || std::to_string(to_ms(events->before)) != instant_ms) continue;
        events->slots = std::move(*slots);
      }
    }
  }
  return true;
}

void put_missing(json& object, const ConfigRecord::MissingBefore& missing) {
  object.erase(kMissingBefore);
  object.erase(kMissingSlots);
  for (const auto& [topic, partitions] : missing) {
    for (const auto& [partition, events] : partitions) {
      const std::int64_t before_ms = to_ms(events.before);
      object[kMissingBefore][topic][partition] = before_ms;
      if (events.slots.empty() || events.slots == SlotSet::all()) continue;
      object[kMissingSlots][topic][partition][std::to_string(before_ms)] = events.slots.text();
    }
  }
}

void put_created(json& object, Instant created) {
  object.erase(kCreated);
  if (created != Instant{}) object[kCreated] = to_ms(created);
}

// The ids as a record holds them: in order, and in UTF-8.
std::string listed(std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return dump(json(ids));
}

std::string duration_text(milliseconds duration) {
  constexpr milliseconds kDay = std::chrono::hours{24};
  if (duration.count() != 0 && duration % kDay == milliseconds{0}) {
    return std::to_string(duration / kDay) + " d";
  }
  return std::to_string(duration.count()) + " ms";
}

}  // namespace

std::string config_key(std::string_view key_prefix) {
  return std::string(key_prefix) + ":!config";
}

Status check_key_prefix(std::string_view key_prefix) {
  const bool good = !key_prefix.empty() && key_prefix.size() <= kPrefixBytesMax &&
                    key_prefix.find_first_of("!{}*?[]\\") == std::string_view::npos &&
                    base::printable(key_prefix) == key_prefix;
  if (good) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       R"(key_prefix: must have 1 to 64 bytes, none of ! { } * ? [ ] \ and no )"
                       "control character");
}

std::string encode_config(const ConfigRecord& record) {
  std::vector<std::string> ids = record.null_user_ids;
  std::sort(ids.begin(), ids.end());
  json object{{"key_prefix", record.key_prefix},
              {"retention_ms", record.retention.count()},
              {"id_hash", record.id_hash},
              {"null_user_ids", ids},
              {"write_format", kRecordFormat},
              {"reservation", {{"max_life_ms", record.reservation_life_max.count()}}}};
  if (record.record_bytes_max != kDefaultRecordBytesMax) {
    object["record_bytes_max"] = record.record_bytes_max;
  }
  put_created(object, record.created);
  put_missing(object, record.missing_before);
  return dump(object);
}

std::string with_missing_before(std::string_view config,
                                const ConfigRecord::MissingBefore& missing) {
  json object = parse_shallow(config);
  if (!object.is_object()) return std::string(config);
  put_missing(object, missing);
  return dump(object);
}

std::string with_created(std::string_view config, Instant created) {
  json object = parse_shallow(config);
  if (!object.is_object()) return std::string(config);
  put_created(object, created);
  return dump(object);
}

std::string missing_before_name(std::string_view group_id, std::string_view topic) {
  const std::string name = std::string(group_id) + ":" + std::string(topic);
  // A name that is not UTF-8 must compare equal to what parse_config() returns for it.
  return json::parse(dump(json(name)), nullptr, false).get<std::string>();
}

std::vector<MissingEvents> ConfigRecord::missing_by_slot() const {
  std::vector<const MissingEvents*> latest_first;
  for (const auto& [topic, partitions] : missing_before) {
    for (const auto& [partition, events] : partitions) latest_first.push_back(&events);
  }
  std::stable_sort(latest_first.begin(), latest_first.end(),
                   [](const auto* a, const auto* b) { return a->before > b->before; });
  std::vector<MissingEvents> by_slot;
  SlotSet rest = SlotSet::all();
  for (const MissingEvents* const events : latest_first) {
    const SlotSet slots = rest & events->slots;
    if (slots.empty()) continue;
    rest -= slots;
    if (!by_slot.empty() && by_slot.back().before == events->before) {
      by_slot.back().slots |= slots;
    } else {
      by_slot.emplace_back(events->before, slots);
    }
    if (rest.empty()) break;
  }
  return by_slot;
}

Result<ConfigRecord> parse_config(std::string_view text) {
  if (text.size() > kConfigBytesMax) return corrupt("is longer than 64 KB");
  return parse_long_config(text);
}

Result<ConfigRecord> parse_long_config(std::string_view text) {
  const json object = parse_shallow(text);
  if (!object.is_object()) return corrupt("is not a JSON object");
  const auto format = number(object, "write_format");
  if (!format) return corrupt("has no write_format");
  if (*format != kRecordFormat) return refuse_format(*format);
  ConfigRecord record;
  const auto prefix = object.find("key_prefix");
  const auto hash = object.find("id_hash");
  const auto retention = number(object, "retention_ms");
  const auto reservation = object.find("reservation");
  std::int64_t life_max_ms = 0;
  if (reservation != object.end() && reservation->is_object()) {
    life_max_ms = number(*reservation, "max_life_ms").value_or(0);
  }
  if (prefix == object.end() || !prefix->is_string() || hash == object.end() ||
      !hash->is_string() || !retention || life_max_ms == 0 ||
      !read_ids(object, record.null_user_ids) || !read_missing(object, record.missing_before) ||
      !read_missing_slots(object, record.missing_before)) {
    return corrupt("lacks a field or has one of a wrong type");
  }
  record.key_prefix = prefix->get<std::string>();
  record.id_hash = hash->get<std::string>();
  record.retention = milliseconds{*retention};
  record.reservation_life_max = milliseconds{life_max_ms};
  if (const auto bytes_max = number(object, "record_bytes_max")) {
    record.record_bytes_max = static_cast<std::size_t>(*bytes_max);
  }
  if (const auto created_ms = number(object, kCreated)) {
    record.created = instant_from_ms(*created_ms);
  }
  return record;
}

std::string config_differences(const ConfigRecord& recorded, const ExpectedConfig& expected) {
  std::string text;
  const auto differs = [&text](const char* name, const std::string& there,
                               const std::string& here) {
    if (there == here) return;
    if (!text.empty()) text += "; ";
    text += std::string(name) + ": " + there + " in the writer, " + here + " here";
  };
  differs("key_prefix", recorded.key_prefix, expected.key_prefix);
  differs("retention", duration_text(recorded.retention), duration_text(expected.retention));
  differs("id hash", recorded.id_hash, ConfigRecord{}.id_hash);
  differs("null_user_ids", listed(recorded.null_user_ids), listed(expected.null_user_ids));
  return text;
}

}  // namespace fcap::redis
