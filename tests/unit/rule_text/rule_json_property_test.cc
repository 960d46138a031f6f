#include <array>
#include <cstdio>

#include <gtest/gtest.h>
#include <xxhash.h>

#include "rule_text/rule_json.h"
#include "rule_text/snapshot.h"
#include "unit/rule_text/random_specs.h"

namespace fcap::rule_text {
namespace rule_json_property_test {

TEST(RuleJsonProperty, EveryRuleSetIsReadBackAsItWasWritten) {
  RandomSpecs specs(test_seed());
  for (int round = 0; round < 500; ++round) {
    const RuleSetSpec spec = specs.spec();
    const std::string json = to_rules_json(spec);
    const auto parsed = parse_rules_json(json);
    ASSERT_TRUE(parsed.ok()) << parsed.status().text() << '\n' << json;
    ASSERT_EQ(first_difference(spec, parsed.value()), "") << json;
    ASSERT_EQ(to_rules_json(parsed.value()), json);
  }
}

TEST(SnapshotProperty, EveryRuleSetIsReadBackAsItWasWritten) {
  RandomSpecs specs(test_seed());
  for (int round = 0; round < 500; ++round) {
    const RuleSetSpec spec = specs.spec();
    const std::string bytes = snapshot_bytes(spec);
    const auto parsed = parse_snapshot(bytes);
    ASSERT_TRUE(parsed.ok()) << parsed.status().text();
    ASSERT_EQ(first_difference(spec, parsed.value()), "");
    ASSERT_EQ(snapshot_bytes(parsed.value()), bytes);
  }
}

// A checksum can be right by intent; then the bytes below it may be anything.
TEST(SnapshotProperty, AnyBytesUnderARightChecksumAreSafe) {
  RandomSpecs specs(test_seed());
  for (int round = 0; round < 2000; ++round) {
    const std::string bytes = snapshot_bytes(specs.spec());
    std::string payload = bytes.substr(bytes.find('\n') + 1);
    payload.resize(payload.size() - specs.below(2) * specs.below(payload.size()));
    for (std::uint64_t change = specs.below(4); change > 0 && !payload.empty(); --change) {
      payload[specs.below(payload.size())] = static_cast<char>(specs.below(256));
    }
    std::array<char, 64> header{};
    std::snprintf(header.data(), header.size(), "fcap-rules 4 %020zu %016llx\n", payload.size(),
                  static_cast<unsigned long long>(XXH3_64bits(payload.data(), payload.size())));
    const auto parsed = parse_snapshot(std::string(header.data()).append(payload));
    if (!parsed.ok()) {
      ASSERT_EQ(parsed.status().code(), StatusCode::kCorrupt) << parsed.status().text();
    }
  }
}

TEST(SnapshotProperty, AnyChangedOrMissingByteIsNoticed) {
  RandomSpecs specs(test_seed());
  for (int round = 0; round < 50; ++round) {
    const std::string bytes = snapshot_bytes(specs.spec());
    ASSERT_TRUE(parse_snapshot(bytes).ok());
    for (int change = 0; change < 50; ++change) {
      std::string changed = bytes;
      const std::size_t at = specs.below(bytes.size());
      changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(1 + specs.below(255)));
      ASSERT_EQ(parse_snapshot(changed).status().code(), StatusCode::kCorrupt) << "byte " << at;
    }
    const std::size_t kept = specs.below(bytes.size());
    ASSERT_EQ(parse_snapshot(bytes.substr(0, kept)).status().code(), StatusCode::kCorrupt);
    ASSERT_EQ(parse_snapshot(bytes + "x").status().code(), StatusCode::kCorrupt);
  }
}

}  // namespace rule_json_property_test
}  // namespace fcap::rule_text
