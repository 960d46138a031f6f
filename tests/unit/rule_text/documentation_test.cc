// The examples of docs/rules-json.md are read as they stand there.
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "rule_text/rule_json.h"
#include "rule_text/snapshot.h"
#include "test_paths.h"

namespace fcap::rule_text {
namespace documentation_test {

std::string document() {
  std::ifstream file(FCAP_SOURCE_DIR "/docs/rules-json.md", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(RulesJsonDocument, ItsExampleMakesARuleSet) {
  const std::string text = document();
  const std::string fence = "```json\n";
  const std::size_t begin = text.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = text.find("```", begin + fence.size());
  auto spec = parse_rules_json(text.substr(begin + fence.size(), end - begin - fence.size()));
  ASSERT_TRUE(spec.ok()) << spec.status().text();
  EXPECT_EQ(spec.value().rules.size(), 3U);
  const auto built = RuleSet::build(std::move(spec).value(), {});
  EXPECT_TRUE(built.ok()) << built.status().text();
}

TEST(RulesJsonDocument, ItsSnapshotHeaderIsTheOneOfAnEmptyRuleSet) {
  const std::string bytes = snapshot_bytes(RuleSetSpec{});
  EXPECT_NE(document().find("    " + std::string(snapshot_header(bytes)) + "\n"),
            std::string::npos);
}

}  // namespace documentation_test
}  // namespace fcap::rule_text
