#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcap/rule.h>
#include <fcap/time.h>

namespace fcap::testing {

/// An event as a producer knows it.
struct SeenEvent {
  std::string user;
  std::string campaign;
  std::string id;
  Instant time;
};

/// What the reference says of one candidate.
struct ReferenceVerdict {
  bool allowed = true;
  std::string rule_id;
  std::uint32_t count = 0;
  std::uint32_t limit = 0;
  std::optional<Instant> eligible_at;

  friend bool operator==(const ReferenceVerdict&, const ReferenceVerdict&) = default;
};

/// Sliding-window caps, computed in the plainest way from the events themselves: every answer
/// counts every event again. It shares no code with fcap.
class ReferenceCaps {
 public:
  explicit ReferenceCaps(std::chrono::milliseconds retention) : retention_(retention) {}

  void set_advertiser(const std::string& campaign, const std::string& advertiser) {
    advertiser_of_[campaign] = advertiser;
  }
  /// Sliding rules of campaign, advertiser and user scope.
  void set_rules(std::vector<Rule> rules) { rules_ = std::move(rules); }
  /// A repeated id counts once; the later time wins.
  void add(const SeenEvent& event);

  [[nodiscard]] ReferenceVerdict judge(const std::string& user, const std::string& campaign,
                                       Instant now) const;

 private:
  /// (campaign, event id) and time.
  using UserEvents = std::map<std::pair<std::string, std::string>, Instant>;

  [[nodiscard]] const UserEvents& events_of(const std::string& user) const;
  [[nodiscard]] bool applies(const Rule& rule, const std::string& campaign) const;
  [[nodiscard]] std::uint32_t count(const Rule& rule, const std::string& user, Instant now) const;
  [[nodiscard]] std::vector<Instant> turning_points(const Rule& rule, const std::string& user,
                                                    Instant now) const;
  [[nodiscard]] std::optional<Instant> eligible_at(const std::vector<const Rule*>& rules,
                                                   const std::string& user, Instant now) const;

  std::chrono::milliseconds retention_;
  std::map<std::string, std::string> advertiser_of_;
  std::vector<Rule> rules_;
  std::map<std::string, UserEvents> events_;
};

}  // namespace fcap::testing
