#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fcap/time.h>

/// What a rule consists of. docs/semantics.md defines the exact meaning, edge by edge.
namespace fcap {

/// What was seen or done. A rule counts events of one type. The values are part of the record's
/// format (docs/ledger-format.md) and never change.
enum class EventType : std::uint8_t { kImpression = 0, kClick = 1, kViewable = 2, kConversion = 3 };

/// Whose events a rule counts together.
enum class Scope : std::uint8_t {
  kCampaign,    ///< one campaign
  kCreative,    ///< one creative, in whatever campaign it is shown
  kAdvertiser,  ///< all campaigns of one advertiser, as the catalog has them now
  kGroup,       ///< all campaigns of one named group
  kUser,        ///< everything the user was shown
};

enum class CalendarUnit : std::uint8_t { kHour, kDay, kWeek, kMonth };

/// Which of a user's retained events count at an instant `now`.
struct Window {
  enum class Kind : std::uint8_t {
    kSliding,   ///< events with now - length < t
    kCalendar,  ///< events since the local start of the current unit
    kFixed,     ///< opens at the first event, closes `length` later
    kLifetime,  ///< all of the retention
  };

  Kind kind = Kind::kSliding;
  /// Sliding and fixed: above zero, at most the retention.
  std::chrono::milliseconds length{0};
  /// Calendar only.
  CalendarUnit unit = CalendarUnit::kDay;
  /// Calendar only: an IANA name such as "Europe/Berlin".
  std::string time_zone = "UTC";
  /// Calendar weeks only: the day a week starts on.
  std::chrono::weekday week_start = std::chrono::Monday;

  friend bool operator==(const Window&, const Window&) = default;
};

/// One rule: at most `limit` events of `event_type` per window, for a scope.
struct Rule {
  /// Whether the rule caps, or is only evaluated and counted in the statistics.
  enum class Mode : std::uint8_t { kEnforce, kShadow };
  /// Soft rules are checked against what has been counted so far; hard rules reserve before
  /// showing.
  enum class Enforcement : std::uint8_t { kSoft, kHard };

  /// Unique within a rule set.
  std::string id = {};
  Scope scope = Scope::kCampaign;
  /// The id of the campaign, creative, advertiser or group; "*" makes the rule a default that
  /// applies to each id of its scope that no rule names. Empty for the user scope.
  std::string target = {};
  EventType event_type = EventType::kImpression;
  /// 0 never lets the candidate pass; absent means "not capped".
  std::optional<std::uint32_t> limit = {};
  Window window = {};
  /// The rule holds for members of this segment only, and replaces the general rule of its key.
  std::optional<std::string> segment = {};
  /// In force in [start, end).
  std::optional<Instant> start = {};
  std::optional<Instant> end = {};
  Mode mode = Mode::kEnforce;
  Enforcement enforcement = Enforcement::kSoft;

  friend bool operator==(const Rule&, const Rule&) = default;
};

/// What the catalog says of a campaign. A deleted one still counts towards its advertiser.
struct Campaign {
  std::string id = {};
  std::string advertiser_id = {};  ///< empty when it has none
  std::vector<std::string> groups = {};
  bool deleted = false;

  friend bool operator==(const Campaign&, const Campaign&) = default;
};

}  // namespace fcap
