#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/export.h>
#include <fcap/rule.h>
#include <fcap/shared_list.h>
#include <fcap/status.h>

namespace fcap {

namespace rules {
struct RuleSetAccess;
}  // namespace rules

/// Everything a rule set is made from.
struct RuleSetSpec {
  /// The source's version; a higher one is newer. Part of the key of every cached verdict.
  std::uint64_t version = 0;
  std::vector<Rule> rules = {};
  std::vector<Campaign> campaigns = {};
};

/// An immutable snapshot of all rules and the catalog, ready to be evaluated.
///
///     auto built = fcap::RuleSet::build(spec, {.retention = std::chrono::days{32}});
///     if (!built.ok()) die(built.status().text());
///     checker.set_rules(built.value());
///
/// Thread safety: immutable after build(); share it freely.
class FCAP_EXPORT RuleSet {
 public:
  struct Options {
    /// How long events are kept. A rule whose window needs more is refused.
    std::chrono::milliseconds retention = kDefaultRetention;
    /// Leave out rules and campaigns that are wrong by themselves (quarantined()) rather than
    /// refuse the whole set. Where more rules are wrong than right, the set is refused all the
    /// same.
    bool quarantine = false;
  };

  /// Validates and compiles. On failure the status names every mistake, one per line, with the
  /// rule's id: a duplicate id, a window that does not fit the retention, an unknown time zone, an
  /// id over 256 bytes, two ids whose 48-bit hashes collide, a target that its scope does not
  /// allow. Reads time-zone data, so never call it on a request path.
  static Result<std::shared_ptr<const RuleSet>> build(RuleSetSpec spec, const Options& options);
  ~RuleSet();
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

  [[nodiscard]] std::uint64_t version() const noexcept;
  [[nodiscard]] std::chrono::milliseconds retention() const noexcept;
  [[nodiscard]] const SharedList<Rule>& rules() const noexcept;
  [[nodiscard]] const SharedList<Campaign>& campaigns() const noexcept;
  /// What is suspicious but accepted: rules that contradict each other or can never act.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept;
  /// What was left out (Options::quarantine) and why: a rule or a campaign each. All processes with
  /// one retention and the same time zones leave out the same.
  [[nodiscard]] const std::vector<std::string>& quarantined() const noexcept;

 private:
  friend struct rules::RuleSetAccess;  // for fcap's own parts
  struct RuleSetParts;
  explicit RuleSet(std::unique_ptr<RuleSetParts> parts);
  std::unique_ptr<RuleSetParts> parts_;
};

}  // namespace fcap
