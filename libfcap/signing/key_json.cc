// Signing keys from JSON and from a file.
#include <utility>

#include <nlohmann/json.hpp>

#include <fcap/signed_id.h>

#include "base/file.h"
#include "base/mistakes.h"
#include "base/time_text.h"
#include "signing/mac_key.h"

namespace fcap {
namespace {

using nlohmann::json;

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20U;
constexpr int kDepthMax = 4;  // the form has three levels

int hex_value(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

bool from_hex(std::string_view digits, std::string& bytes) {
  if (digits.size() % 2 != 0) return false;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = hex_value(digits[i]);
    const int low = hex_value(digits[i + 1]);
    if (high < 0 || low < 0) return false;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return true;
}

// A value is never repeated in a message: it may be a secret in the wrong place.
void read_member(const std::string& name, const std::string& value, const std::string& place,
                 SigningKey& key, base::Mistakes& mistakes) {
  if (name == "id") {
    key.id = value;
  } else if (name == "secret") {
    if (!from_hex(value, key.secret)) {
      mistakes.add(place + ".secret: must be pairs of hexadecimal digits");
    }
  } else {
    const auto instant = base::parse_instant(value);
    if (!instant) {
      mistakes.add(place + "." + name + ": must be an instant such as \"2026-01-01T00:00:00Z\"");
    } else if (name == "from") {
      key.from = *instant;
    } else {
      key.until = *instant;
    }
  }
}

SigningKey read_key(const json& object, const std::string& place, base::Mistakes& mistakes) {
  SigningKey key;
  if (!object.is_object()) {
    mistakes.add(place + ": must be an object");
    return key;
  }
  for (const char* name : {"id", "secret", "from"}) {
    if (!object.contains(name)) mistakes.add(place + "." + name + ": is missing");
  }
  for (const auto& [name, value] : object.items()) {
    if (name != "id" && name != "secret" && name != "from" && name != "until") {
      mistakes.add(place +
                   ": has a member that is not known; it must be one of id, secret, from, until");
    } else if (!value.is_string()) {
      // NOLINTNEXTLINE(performance-inefficient-string-concatenation): for a mistake only
      mistakes.add(place + "." + name + ": must be a string");
    } else {
      read_member(name, value.get_ref<const std::string&>(), place, key, mistakes);
    }
  }
  return key;
}

json parse_shallow(std::string_view text) {
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

}  // namespace

Result<std::shared_ptr<const SigningKeys>> SigningKeys::parse(std::string_view text) {
  const json document = parse_shallow(text);
  const auto list = document.is_object() ? document.find("keys") : document.end();
  if (!document.is_object() || document.size() != 1 || list == document.end() ||
      !list->is_array()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "signing keys: must be a JSON object {\"keys\": [...]}");
  }
  base::Mistakes mistakes;
  std::vector<SigningKey> keys;
  for (const json& each : *list) {
    keys.push_back(read_key(each, "keys[" + std::to_string(keys.size()) + "]", mistakes));
  }
  if (mistakes.empty()) return create(std::move(keys));
  for (SigningKey& key : keys) signing::wipe(key.secret);
  return Status::error(StatusCode::kInvalidArgument, "signing keys: " + mistakes.one_line());
}

Result<std::shared_ptr<const SigningKeys>> SigningKeys::read(const std::string& path) {
  auto text = base::read_file(path, kFileBytesMax);
  if (!text.ok()) {
    return Status::error(text.status().code(), "signing keys: " + text.status().text());
  }
  auto keys = parse(text.value());
  signing::wipe(text.value());
  if (keys.ok()) return keys;
  return Status::error(keys.status().code(),
                       "signing keys: \"" + path + "\": " + keys.status().text());
}

}  // namespace fcap
