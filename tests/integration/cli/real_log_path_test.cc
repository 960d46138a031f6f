// An impression log through Kafka, fcap-updater, Redis and libfcap: the real one of data/README.md
// where it is there, otherwise a generated one of its shape (tests/support/impression_log.h). Two
// figures are published for the real one under "3 per sliding 24 hours": 10,958 rows (27.40 %) are
// blocked when only admitted impressions count, 14,850 (37.12 %) arrive over the cap when all
// count.
#include <array>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/whole_path_test.h"
#include "tests/support/impression_log.h"

namespace fcap {
namespace real_log_path_test {

using testing::SeenEvent;

// The log's rows in its order, shifted so that the last is a minute ago.
std::vector<SeenEvent> shifted(const std::vector<test_log::LogRow>& log,
                               const std::string& user_prefix) {
  std::vector<SeenEvent> rows;
  for (const test_log::LogRow& row : log) {
    rows.push_back({.user = user_prefix + row.user,
                    .campaign = row.campaign,
                    .id = user_prefix + std::to_string(rows.size()),
                    .time = Instant(std::chrono::seconds(row.unix_seconds))});
  }
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto shift =
      std::chrono::floor<std::chrono::seconds>(now - std::chrono::minutes(1) - rows.back().time);
  for (SeenEvent& row : rows) row.time += shift;
  return rows;
}

// The n-th rows of each (user, campaign) together: with caps on campaigns only, a row's answer
// hangs on the earlier rows of its own user and campaign, and on nothing else.
std::vector<std::vector<const SeenEvent*>> rounds_of(const std::vector<SeenEvent>& rows) {
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  std::vector<std::vector<const SeenEvent*>> rounds;
  for (const SeenEvent& row : rows) {
    const std::size_t round = seen[{row.user, row.campaign}]++;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back(&row);
  }
  return rounds;
}

class RealLog : public testing::WholePathTest {
 protected:
  // Plays the log; how many of its rows were over the cap when they came.
  std::size_t over_cap(const std::string& user_prefix, bool count_only_admitted) {
    const std::vector<SeenEvent> rows = shifted(log, user_prefix);
    EXPECT_EQ(rows.size(), 40'000U);
    cap_every_campaign(rows);
    const auto checker = servers->make_checker();
    std::size_t over = 0;
    for (const auto& round : rounds_of(rows)) {
      for (const SeenEvent* row : round) {
        const std::array<Candidate, 1> candidate{{{row->campaign, {}}}};
        const CheckResult result = checker->check(row->user, candidate, {.now = row->time});
        EXPECT_EQ(result.reason, Reason::kPassed);
        const bool allowed = result.verdicts.at(0).allowed;
        if (!allowed) ++over;
        if (allowed || !count_only_admitted) servers->produce(*row);
      }
      EXPECT_TRUE(servers->drain()) << servers->updater_log();
      if (HasFailure()) break;
    }
    return over;
  }

  static void cap_every_campaign(const std::vector<SeenEvent>& rows) {
    std::string values;
    std::map<std::string, bool> known;
    for (const SeenEvent& row : rows) {
      if (known.emplace(row.campaign, true).second) {
        values += (values.empty() ? "('" : ", ('") + row.campaign + "', 3, 86400)";
      }
    }
    servers->postgres.sql(servers->conninfo,
                          "INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES " + values +
                              " ON CONFLICT DO NOTHING");
  }

  const std::vector<test_log::LogRow> log = test_log::impression_log();
  const test_log::LogFigures figures = test_log::count_figures(log);
};

TEST_F(RealLog, HasThePublishedFigures) {
  if (!test_log::has_real_log()) return;  // the others run on one of the same shape
  EXPECT_EQ(figures.blocked, 10'958U);
  EXPECT_EQ(figures.over_cap, 14'850U);
}

TEST_F(RealLog, TheCapBlocksItsShareWhenAdmittedImpressionsCount) {
  EXPECT_EQ(over_cap("admitted-", true), figures.blocked);
}

TEST_F(RealLog, SOAK_ItsShareArrivesOverTheCapWhenEveryImpressionCounts) {
  EXPECT_EQ(over_cap("all-", false), figures.over_cap);
}

}  // namespace real_log_path_test
}  // namespace fcap
