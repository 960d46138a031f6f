#include <cstdio>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcap/prometheus.h>

#include "unit/checker/fixtures.h"

namespace fcap::checker_test {
namespace prometheus_test {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// A Checker that has answered: one user under the cap, one over it, one without an id, who could
// not have a place reserved either.
struct Scene {
  ScriptedChecker world;

  Scene() {
    Rule shadow = sliding_rule("shadow \"quoted\"", "c2", 0);
    shadow.mode = Rule::Mode::kShadow;
    world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1), shadow}));
    world.store->answer_at_once = StoreCode::kOk;
    world.store->records["fcap:{over}"] = record_of("c1", 1);
    const Candidate candidates[] = {{"c1"}, {"c2"}};
    for (const char* user : {"over", "under", ""}) (void)world.checker->check(user, candidates);
    (void)world.checker->hard({HardCall::kReserve, {"", candidates[0], "e1"}});
  }
};

TEST(PrometheusText, HasEveryStatistic) {
  const Scene scene;
  const std::string text = prometheus_text(*scene.world.checker);
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_checks_total 3\n"));
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_verdicts_total{verdict=\"capped\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_unjudged_total{reason=\"no_user\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("unjudged_total{reason=\"done\"}")));
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_hard_calls_total{outcome=\"no_user\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_hard_calls_total{outcome=\"done\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_shadow_capped_by_rule_total{"
                              "rule=\"shadow \\\"quoted\\\"\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_rules 2\n"));
  EXPECT_THAT(text, HasSubstr("\n# TYPE fcap_checker_check_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_check_seconds_bucket{le=\"+Inf\"} "));
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_store_connected "));
}

TEST(PrometheusText, GivesEverySampleTheHostsLabels) {
  const Scene scene;
  const std::string text =
      prometheus_text(*scene.world.checker, {{"region", "eu"}, {"odd", "a\"b\\c\nd"}});
  std::size_t samples = 0;
  std::size_t labelled = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    if (text[at] == '#') continue;
    const std::string line = text.substr(at, text.find('\n', at) - at);
    ++samples;
    if (line.find("{region=\"eu\",odd=\"a\\\"b\\\\c\\nd\"") != std::string::npos) ++labelled;
  }
  EXPECT_GT(samples, 50U);
  EXPECT_EQ(labelled, samples);
}

TEST(PrometheusText, BucketsAreCumulativeAndEndWithTheCount) {
  Scene scene;
  const Candidate candidates[] = {{"c1"}};
  for (int i = 0; i < 200; ++i) (void)scene.world.checker->check("under", candidates);
  const std::string text = prometheus_text(*scene.world.checker);
  std::uint64_t last = 0;
  std::size_t buckets = 0;
  const std::string name = "\nfcap_checker_check_seconds_bucket{";
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::uint64_t count = std::stoull(text.substr(text.find("} ", at) + 2));
    EXPECT_GE(count, last);
    last = count;
    ++buckets;
  }
  EXPECT_EQ(buckets, LatencyHistogram::kBucketCount);
  EXPECT_GT(last, 0U);
  EXPECT_THAT(text, HasSubstr("\nfcap_checker_check_seconds_count " + std::to_string(last) + "\n"));
}

TEST(PrometheusText, TheReferenceNamesEveryMetricOnce) {
  const Scene scene;
  const std::string text = prometheus_text(*scene.world.checker);
  const std::string reference = prometheus_reference();
  std::size_t metrics = 0;
  for (std::size_t at = text.find("# TYPE "); at != std::string::npos;
       at = text.find("# TYPE ", at + 1)) {
    const std::size_t begin = at + 7;
    const std::string name = text.substr(begin, text.find(' ', begin) - begin);
    const std::string row = "| `" + name + "` |";
    const std::size_t found = reference.find(row);
    EXPECT_NE(found, std::string::npos) << name;
    EXPECT_EQ(reference.find(row, found + 1), std::string::npos) << name;
    ++metrics;
  }
  EXPECT_GT(metrics, 40U);
}

TEST(PrometheusText, IsAcceptedByPromtool) {
  const Scene scene;
  std::FILE* promtool = ::popen("promtool check metrics 2>&1", "w");
  ASSERT_NE(promtool, nullptr);
  const std::string text = prometheus_text(*scene.world.checker, {{"region", "eu"}});
  std::fwrite(text.data(), 1, text.size(), promtool);
  EXPECT_EQ(::pclose(promtool), 0) << "is the package prometheus (promtool) installed?\n" << text;
}

}  // namespace prometheus_test
}  // namespace fcap::checker_test
