// The real impression log of data/README.md (where FCAP_DATA_DIR, or ../shared/data beside the
// repository, holds it) through Kafka, fcap-updater, Redis and libfcap. Two figures are published
// for it under "3 per sliding 24 hours": 10,958 rows (27.40 %) are blocked when only admitted
// impressions count, 14,850 (37.12 %) arrive over the cap when all count.
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "support/whole_path.h"
#include "test_paths.h"

namespace fcap {
namespace {

using testing::SeenEvent;
using testing::WholePath;

std::filesystem::path log_file() {
  const char* given =
      std::getenv("FCAP_DATA_DIR");  // NOLINT(concurrency-mt-unsafe): before threads
  const std::filesystem::path directory =
      given != nullptr ? std::filesystem::path(given)
                       : std::filesystem::path(FCAP_SOURCE_DIR).parent_path() / "shared" / "data";
  return directory / "open_bandit_zozotown_40k.csv.gz";
}

/// A developer may do without the log, CI may not.
bool has_log() {
  return testing::present(std::filesystem::exists(log_file()),
                          log_file().string() + " is not there (set FCAP_DATA_DIR)", "CI");
}

/// The log's rows in its order, shifted so that the last is a minute ago.
std::vector<SeenEvent> read_log(const std::string& user_prefix) {
  const auto file = gzopen(log_file().c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + log_file().string());
  std::array<char, 1024> line{};
  std::vector<SeenEvent> rows;
  gzgets(file, line.data(), line.size());  // the header
  while (gzgets(file, line.data(), line.size()) != nullptr) {
    const std::string text = line.data();
    const auto campaign = text.find(',') + 1;
    const auto creative = text.find(',', campaign) + 1;
    const auto time = text.find(',', creative) + 1;
    std::int64_t seconds = 0;
    std::from_chars(text.data() + time, text.data() + text.size(), seconds);
    rows.push_back({.user = user_prefix + text.substr(0, campaign - 1),
                    .campaign = text.substr(campaign, creative - 1 - campaign),
                    .id = user_prefix + std::to_string(rows.size()),
                    .time = Instant(std::chrono::seconds(seconds))});
  }
  gzclose(file);
  const auto now =
      std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto shift =
      std::chrono::floor<std::chrono::seconds>(now - std::chrono::minutes(1) - rows.back().time);
  for (SeenEvent& row : rows) row.time += shift;
  return rows;
}

/// The n-th rows of each (user, campaign) together: with caps on campaigns only, a row's answer
/// hangs on the earlier rows of its own user and campaign, and on nothing else.
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

class RealLog : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!WholePath::available() || !has_log()) return;
    path = std::make_unique<WholePath>();
    path->start_updater();
  }
  static void TearDownTestSuite() { path.reset(); }

  void SetUp() override {
    if (!has_log()) GTEST_SKIP() << log_file() << " is not there (set FCAP_DATA_DIR)";
    if (!path) GTEST_SKIP() << "redis-server, java, mvn or PostgreSQL is missing";
  }

  /// Plays the log; how many of its rows were over the cap when they came.
  std::size_t over_cap(const std::string& user_prefix, bool count_only_admitted) {
    const std::vector<SeenEvent> rows = read_log(user_prefix);
    EXPECT_EQ(rows.size(), 40'000U);
    cap_every_campaign(rows);
    const auto checker = path->make_checker();
    std::size_t over = 0;
    for (const auto& round : rounds_of(rows)) {
      for (const SeenEvent* row : round) {
        const std::array<Candidate, 1> candidate{{{row->campaign, {}}}};
        const CheckResult result = checker->check(row->user, candidate, {.now = row->time});
        EXPECT_EQ(result.reason, Reason::kPassed);
        const bool allowed = result.verdicts.at(0).allowed;
        if (!allowed) ++over;
        if (allowed || !count_only_admitted) path->produce(*row);
      }
      EXPECT_TRUE(path->drain()) << path->updater_log();
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
    path->postgres.sql(path->conninfo,
                       "INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES " + values +
                           " ON CONFLICT DO NOTHING");
  }

  static inline std::unique_ptr<WholePath> path;
};

TEST_F(RealLog, TheCapBlocksThePublishedShareWhenAdmittedImpressionsCount) {
  EXPECT_EQ(over_cap("admitted-", true), 10'958U);
}

TEST_F(RealLog, ThePublishedShareArrivesOverTheCapWhenEveryImpressionCounts) {
  EXPECT_EQ(over_cap("all-", false), 14'850U);
}

}  // namespace
}  // namespace fcap
