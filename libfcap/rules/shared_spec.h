#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <fcap/rule_set.h>

#include "rules/shared_list_builder.h"

namespace fcap::rules {

/// What a rule set is made from, in the form in which the set keeps it.
struct SharedSpec {
  std::uint64_t version = 0;
  SharedList<Rule> rules = {};
  SharedList<Campaign> campaigns = {};
};

/// Takes the rules and campaigns that a source reads, one after the other.
class SpecSink {
 public:
  SpecSink() = default;
  virtual ~SpecSink() = default;
  SpecSink(const SpecSink&) = delete;
  SpecSink& operator=(const SpecSink&) = delete;

  /// How many there will be, about; before the first of them.
  virtual void expect_rules(std::size_t count) = 0;
  virtual void expect_campaigns(std::size_t count) = 0;
  virtual void add(Rule&& rule) = 0;
  virtual void add(Campaign&& campaign) = 0;
};

/// Makes a plain spec.
class PlainSpecSink final : public SpecSink {
 public:
  void expect_rules(std::size_t count) override { spec.rules.reserve(count); }
  void expect_campaigns(std::size_t count) override { spec.campaigns.reserve(count); }
  void add(Rule&& rule) override { spec.rules.push_back(std::move(rule)); }
  void add(Campaign&& campaign) override { spec.campaigns.push_back(std::move(campaign)); }

  RuleSetSpec spec;
};

/// Makes a spec that shares with a rule set what is equal. It never holds more of what is equal
/// than one block, so that a reload in which little changes takes little.
class SharedSpecSink final : public SpecSink {
 public:
  /// Null: there is nothing to share with. Otherwise it must outlive the sink.
  explicit SharedSpecSink(const RuleSet* basis)
      : rules_(basis != nullptr ? basis->rules() : nothing_.rules),
        // NOLINTNEXTLINE(clang-analyzer-optin.cplusplus.UninitializedObject): references are set
        campaigns_(basis != nullptr ? basis->campaigns() : nothing_.campaigns) {}

  void expect_rules(std::size_t count) override { rules_.reserve(count); }
  void expect_campaigns(std::size_t count) override { campaigns_.reserve(count); }
  void add(Rule&& rule) override { rules_.add(std::move(rule)); }
  void add(Campaign&& campaign) override { campaigns_.add(std::move(campaign)); }

  SharedSpec finish(std::uint64_t version) {
    return {.version = version, .rules = rules_.finish(), .campaigns = campaigns_.finish()};
  }

 private:
  SharedSpec nothing_;
  SharedListBuilder<Rule> rules_;
  SharedListBuilder<Campaign> campaigns_;
};

inline SharedSpec shared(RuleSetSpec spec) {
  return {.version = spec.version,
          .rules = SharedListBuilder<Rule>::of(std::move(spec.rules)),
          .campaigns = SharedListBuilder<Campaign>::of(std::move(spec.campaigns))};
}

}  // namespace fcap::rules
