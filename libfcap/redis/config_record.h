#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/health.h>
#include <fcap/status.h>
#include <fcap/time.h>

#include "redis/slot_set.h"

namespace fcap::redis {

/// Later than any event.
inline constexpr Instant kAnyEvent = Instant::max();

/// The newest record format in use, as the value says it: it counts for the records of users and
/// for the value itself. Numbers below were used before the first release.
inline constexpr std::int64_t kRecordFormat = 3;

/// Events before an instant may be missing from the records of users in some slots.
struct MissingEvents {
  MissingEvents() = default;
  /// Implicit, because most statements are about all users.
  MissingEvents(Instant of, SlotSet from = SlotSet::all()) : before(of), slots(std::move(from)) {}

  Instant before = {};
  SlotSet slots = SlotSet::all();

  friend bool operator==(const MissingEvents&, const MissingEvents&) = default;
};

/// The writer's configuration, which it records for readers: one small JSON value at config_key().
struct ConfigRecord {
  std::string key_prefix;
  std::chrono::milliseconds retention{0};
  /// How ids become the numbers of a record.
  std::string id_hash = "xxh3-48";
  std::vector<std::string> null_user_ids;
  /// The longest life of a reservation, above 0.
  std::chrono::milliseconds reservation_life_max = kDefaultReservationLifeMax;
  /// What the writer trims a user's record to.
  std::size_t record_bytes_max = kDefaultRecordBytesMax;
  /// When it was written where there was none, by an updater's clock; epoch: unknown. Another
  /// instant than before shows that Redis has lost its data meanwhile.
  Instant created = {};
  /// The open gaps: the partitions whose events may be missing, each with an instant that is later
  /// than all those events, and the slots of all users that they may belong to. By
  /// "<group>:<topic>", and by the partition's number, "*", "expired" or "repeated" (docs/keys.md).
  using MissingBefore = std::map<std::string, std::map<std::string, MissingEvents>>;
  MissingBefore missing_before = {};

  /// By slot, the latest instant of all partitions: a count of events since then is complete. The
  /// sets have no slot in common, and the one with the latest instant comes first. Empty: no gap is
  /// open.
  [[nodiscard]] std::vector<MissingEvents> missing_by_slot() const;

  bool operator==(const ConfigRecord&) const = default;
};

/// "<prefix>:!config".
[[nodiscard]] std::string config_key(std::string_view key_prefix);

/// Whether keys may begin with this prefix: 1 to 64 bytes, without "!" (with which all keys but
/// those of users begin), braces (which would change the slot), the wildcards of SCAN and of ACL
/// patterns and control characters. The text names the option as `key_prefix`.
[[nodiscard]] Status check_key_prefix(std::string_view key_prefix);

/// docs/keys.md defines the bytes.
[[nodiscard]] std::string encode_config(const ConfigRecord& record);

/// The same value with other open gaps. All its other members stay, known or not. `config` must be
/// a value that parse_config() accepts.
[[nodiscard]] std::string with_missing_before(std::string_view config,
                                              const ConfigRecord::MissingBefore& missing);

/// The same value, created at another instant.
[[nodiscard]] std::string with_created(std::string_view config, Instant created);

/// The name under which `missing_before` lists a consumer group's topic.
[[nodiscard]] std::string missing_before_name(std::string_view group_id, std::string_view topic);

/// The longest value that parse_config() accepts.
inline constexpr std::size_t kConfigBytesMax = std::size_t{64} << 10U;

/// Fails if the text is not such a value (kCorrupt), or has a record format that this release does
/// not know (kRefused). Unknown fields are ignored.
[[nodiscard]] Result<ConfigRecord> parse_config(std::string_view text);
/// The same for the updater that is about to shorten the value: also of one that is too long for
/// readers.
[[nodiscard]] Result<ConfigRecord> parse_long_config(std::string_view text);

/// What differs between the record and what a reader expects, for people, one part per difference;
/// empty when they agree.
[[nodiscard]] std::string config_differences(const ConfigRecord& recorded,
                                             const ExpectedConfig& expected);

}  // namespace fcap::redis
