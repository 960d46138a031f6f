#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fcap/rule_set.h>

namespace fcap::rules::reference {

/// The rules' meaning once more, as slowly and plainly as it can be said, to compare with. It
/// shares nothing with the evaluator: ids are strings, calendars are walked minute by minute, and
/// an eligible_at is found by trying every instant at which anything could change.

struct Event {
  std::int64_t at_ms = 0;
  std::string campaign;
  std::string creative;
  EventType type = EventType::kImpression;
  std::uint32_t id = 0;  ///< of the event: together with campaign and type, its identity
};

struct Reservation {
  Event event;
  std::int64_t expires_ms = 0;
  bool released = false;
};

struct World {
  RuleSetSpec spec;
  std::int64_t retention_ms = 0;
  std::vector<Event> events;              ///< of each identity one
  std::vector<Reservation> reservations;  ///< likewise
  std::vector<std::string> segments;      ///< the user's
};

struct Candidate {
  std::string campaign;
  std::string creative;
};

/// A rule together with the id that it counts for.
struct Applied {
  const Rule* rule = nullptr;
  std::string target;

  friend bool operator==(const Applied&, const Applied&) = default;
};

struct Account {
  std::uint32_t count = 0;  ///< reservations included
  std::uint32_t reserved = 0;
  bool stands = false;
  std::optional<std::int64_t> eligible_ms;
};

struct Answer {
  bool allowed = true;
  bool shadow = false;
  std::string rule_id;
  std::uint32_t count = 0;
  std::uint32_t limit = 0;
  std::optional<std::int64_t> eligible_ms;
  /// By rule id; of a candidate's several groups under one default, by rule id and group.
  std::map<std::pair<std::string, std::string>, Account> accounts;
};

[[nodiscard]] Answer judge(const World& past, const Candidate& candidate, std::int64_t now_ms);

/// Whether one of the world's reservations counts.
[[nodiscard]] bool is_live(const World& world, const Reservation& reservation, std::int64_t now_ms);

/// Whether an impression of the candidate may be reserved: with it, no enforced rule exceeds its
/// limit, and none of another type stands in the way.
[[nodiscard]] bool may_reserve(const World& world, const Candidate& candidate, std::int64_t now_ms);

/// What is left of copies when each identity is there once, and nothing up to and including
/// `erased_ms`.
void merge_copies(World& world, std::optional<std::int64_t> erased_ms);

/// Starts of a calendar's units in [2025-10-01, 2026-10-01), which is where the tests play.
[[nodiscard]] const std::vector<std::int64_t>& calendar_starts(const Window& window);

}  // namespace fcap::rules::reference
