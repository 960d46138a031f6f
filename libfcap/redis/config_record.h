#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/health.h>
#include <fcap/status.h>

namespace fcap::redis {

/// How the writer is set, as it records it for the readers: one small JSON value at config_key().
struct ConfigRecord {
  std::string key_prefix;
  std::chrono::milliseconds retention{0};
  /// How ids become the numbers of a record.
  std::string id_hash = "xxh3-48";
  std::vector<std::string> null_user_ids;
  /// Which frames writers may write: one number for the fleet.
  int write_format = 1;
  /// The longest life of a reservation; 0: none are made.
  std::chrono::milliseconds reservation_life_max{0};

  bool operator==(const ConfigRecord&) const = default;
};

/// "<prefix>:!config".
[[nodiscard]] std::string config_key(std::string_view key_prefix);

/// Whether a prefix may stand before keys: 1 to 64 bytes, without "!" (which begins what is no
/// user), braces (which would move the slot) and the wildcards of SCAN and of ACL patterns. The
/// text names the option as `key_prefix`.
[[nodiscard]] Status check_key_prefix(std::string_view key_prefix);

[[nodiscard]] std::string encode_config(const ConfigRecord& record);

/// Fails (kCorrupt) on what is no such value, or one of a version that this one does not know.
/// Fields that are not known are passed over.
[[nodiscard]] Result<ConfigRecord> parse_config(std::string_view text);

/// What differs between the record and what a reader expects, for people, one part per difference;
/// empty when they agree.
[[nodiscard]] std::string config_differences(const ConfigRecord& recorded,
                                             const ExpectedConfig& expected);

}  // namespace fcap::redis
