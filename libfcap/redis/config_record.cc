#include "redis/config_record.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

namespace fcap::redis {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr int kVersion = 1;
constexpr std::size_t kPrefixBytesMax = 64;
constexpr std::size_t kConfigBytesMax = std::size_t{64} << 10U;
constexpr std::int64_t kMillisecondsMax = std::int64_t{1} << 53U;

Status corrupt(const std::string& text) {
  return Status::error(StatusCode::kCorrupt, "the recorded configuration " + text);
}

std::string dump(const json& value) {
  // Ids are bytes; those that are no UTF-8 are shown by a substitute.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<std::int64_t> number(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > kMillisecondsMax) {
    return std::nullopt;
  }
  const auto value = found->get<std::int64_t>();
  if (value < 0 || value > kMillisecondsMax) return std::nullopt;
  return value;
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

// As they would be recorded: in order, and in UTF-8.
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
                    key_prefix.find_first_of("!{}*?[]\\") == std::string_view::npos;
  if (good) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       R"(key_prefix: must have 1 to 64 bytes and none of ! { } * ? [ ] \)");
}

std::string encode_config(const ConfigRecord& record) {
  std::vector<std::string> ids = record.null_user_ids;
  std::sort(ids.begin(), ids.end());
  return dump({{"version", kVersion},
               {"key_prefix", record.key_prefix},
               {"retention_ms", record.retention.count()},
               {"id_hash", record.id_hash},
               {"null_user_ids", ids},
               {"write_format", record.write_format},
               {"reservation", {{"max_life_ms", record.reservation_life_max.count()}}}});
}

Result<ConfigRecord> parse_config(std::string_view text) {
  if (text.size() > kConfigBytesMax) return corrupt("is longer than 64 KB");
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return corrupt("is no JSON object");
  const auto version = number(object, "version");
  if (!version) return corrupt("has no version");
  if (*version != kVersion) {
    return corrupt("has version " + std::to_string(*version) + ", which this release cannot read");
  }
  ConfigRecord record;
  const auto prefix = object.find("key_prefix");
  const auto hash = object.find("id_hash");
  const auto retention = number(object, "retention_ms");
  const auto write_format = number(object, "write_format");
  if (prefix == object.end() || !prefix->is_string() || hash == object.end() ||
      !hash->is_string() || !retention || !write_format || *write_format > 1000 ||
      !read_ids(object, record.null_user_ids)) {
    return corrupt("lacks a field or has one of a wrong type");
  }
  record.key_prefix = prefix->get<std::string>();
  record.id_hash = hash->get<std::string>();
  record.retention = milliseconds{*retention};
  record.write_format = static_cast<int>(*write_format);
  if (const auto reservation = object.find("reservation");
      reservation != object.end() && reservation->is_object()) {
    record.reservation_life_max = milliseconds{number(*reservation, "max_life_ms").value_or(0)};
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
