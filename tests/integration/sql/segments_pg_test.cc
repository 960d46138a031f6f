// Segments in PostgreSQL: their tables, how they are read, and that a Checker follows them.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <roaring/roaring64map.hh>

#include <fcap/checker.h>
#include <fcap/store.h>

#include "sources/segment_loading.h"
#include "sources/segment_refresher.h"
#include "support/postgres_test.h"
#include "support/service.h"
#include "test_paths.h"

namespace fcap {
namespace segments_pg_test {

using sources::SegmentRefresher;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::SqlAnswer;
using testing::wait_until;

constexpr seconds kPatience{60};
constexpr milliseconds kNever = std::chrono::hours{1};

// A portable roaring bitmap as SQL writes bytes.
std::string bitmap(std::initializer_list<std::uint64_t> numbers) {
  Roaring64Map map;
  for (const std::uint64_t number : numbers) map.add(number);
  std::string bytes(map.getSizeInBytes(), '\0');
  map.write(bytes.data());
  std::string text = "'\\x";
  for (const char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4U];
    text += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return text + "'";
}

class SegmentsPg : public testing::PostgresTest {
 protected:
  long long version() {
    return std::stoll(server->value(database_, "SELECT version FROM segment_set_version"));
  }
  [[nodiscard]] std::shared_ptr<const SegmentSet> loaded() const {
    auto segments = sources::load_segments_from_postgres(database_, kPatience);
    EXPECT_TRUE(segments.ok()) << segments.status().text();
    return segments.ok() ? segments.value().set : nullptr;
  }
  [[nodiscard]] Status refused() const {
    return sources::load_segments_from_postgres(database_, kPatience).status();
  }
  [[nodiscard]] RuleSourceOptions rules(milliseconds poll_interval, bool listen) const {
    RuleSourceOptions options;
    options.postgres = database_;
    options.poll_interval = poll_interval;
    options.listen = listen;
    return options;
  }
  [[nodiscard]] bool listens() const {
    return value(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
               "query = 'LISTEN fcap_segments'") == "1";
  }
};

// Connections of this process: the listener's, and that of a look while there is one.
std::ptrdiff_t open_sockets() {
  std::error_code gone;
  return std::ranges::count_if(std::filesystem::directory_iterator("/proc/self/fd"),
                               [&](const auto& fd) {
                                 const auto what = std::filesystem::read_symlink(fd, gone);
                                 return what.string().starts_with("socket:");
                               });
}

// A refresher, and the segments that it handed out last.
class Following {
 public:
  explicit Following(const RuleSourceOptions& rules)
      : refresher_(
            {.postgres = true}, rules,
            [this](std::shared_ptr<const SegmentSet> set) {
              const std::lock_guard lock(mutex_);
              current_ = std::move(set);
            },
            [this](LogLevel level, std::string_view line) {
              const std::lock_guard lock(mutex_);
              if (level == LogLevel::kError) errors_.emplace_back(line);
            }) {
    EXPECT_TRUE(refresher_.start().ok());
  }
  SegmentRefresher* operator->() { return &refresher_; }
  std::shared_ptr<const SegmentSet> current() {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  std::vector<std::string> errors() {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  bool reaches(std::string_view segment, std::string_view user) {
    return wait_until([&] { return current() && current()->contains(segment, user); }, kPatience);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const SegmentSet> current_;
  std::vector<std::string> errors_;
  SegmentRefresher refresher_;  // last: its thread uses the others
};

TEST_F(SegmentsPg, EveryKindOfStatementRaisesTheVersion) {
  long long before = version();
  for (const char* statement :
       {"INSERT INTO segments (id) VALUES ('vip')", "UPDATE segments SET note = 'x'",
        "INSERT INTO segment_members VALUES ('vip', 'u1'), ('vip', 'u2')",
        "UPDATE segment_members SET user_id = 'u3' WHERE user_id = 'u2'",
        "DELETE FROM segment_members", "TRUNCATE segment_members", "DELETE FROM segments",
        "TRUNCATE segments"}) {
    sql(statement);
    const long long now = version();
    EXPECT_EQ(now, before + 1) << statement;
    before = now;
  }
  const std::string rules = server->value(database_, "SELECT version FROM rule_set_version");
  EXPECT_EQ(rules, "1") << "rules have a version of their own";
}

TEST_F(SegmentsPg, TheTablesRefuseWhatIsNoId) {
  const std::pair<const char*, const char*> nonsense[] = {
      {"INSERT INTO segments (id) VALUES ('')", "fcap_id_bytes"},
      {"INSERT INTO segment_members VALUES ('vip', '')", "fcap_id_bytes"},
      {"INSERT INTO segment_members VALUES ('', 'u1')", "fcap_id_bytes"},
      {"INSERT INTO segment_members VALUES ('vip', repeat('x', 257))", "fcap_id_bytes"},
      {"INSERT INTO segment_members VALUES ('vip', 'u1'), ('vip', 'u1')", "segment_members_pkey"},
      {"INSERT INTO segment_set_version VALUES (false, 1)", "segment_set_version_one_row"},
  };
  for (const auto& [statement, constraint] : nonsense) {
    const SqlAnswer answer = server->try_sql(database_, statement);
    EXPECT_EQ(answer.constraint, constraint) << statement;
  }
}

TEST_F(SegmentsPg, BitmapsAndRowsAreReadAsOneSegment) {
  sql("INSERT INTO segments (id, bitmap) VALUES ('vip', " + bitmap({7, (1ULL << 40U) + 1}) +
      "), ('empty', NULL)");
  sql(R"(INSERT INTO segment_members VALUES ('vip', '07'), ('vip', '9'), ('press', E'tab\there'),)"
      R"( ('press', E'back\\slash'), ('press', 'Ünal'), ('press', '\N'))");
  const auto set = loaded();
  ASSERT_TRUE(set);
  EXPECT_THAT(set->names(), ElementsAre("empty", "press", "vip"));
  EXPECT_EQ(set->version(), static_cast<std::uint64_t>(version()));
  for (const char* member : {"7", "1099511627777", "07", "9"}) {
    EXPECT_TRUE(set->contains("vip", member)) << member;
  }
  for (const char* member : {"tab\there", "back\\slash", "Ünal", "\\N"}) {
    EXPECT_TRUE(set->contains("press", member)) << member;
  }
  EXPECT_EQ(set->memory().members, 8U);
  EXPECT_FALSE(set->contains("vip", "1"));
  EXPECT_FALSE(set->contains("press", "7"));
}

TEST_F(SegmentsPg, TheStatementsOfTheDocumentationWork) {
  std::ifstream file(FCAP_SOURCE_DIR "/docs/segments.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string fence = "```sql\n";
  std::size_t blocks = 0;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    sql(text.substr(at, text.find("```", at) - at));
    ++blocks;
  }
  EXPECT_EQ(blocks, 1U);
  const auto set = loaded();
  ASSERT_TRUE(set);
  EXPECT_THAT(set->names(), ElementsAre("press", "vip"));
  EXPECT_EQ(set->memory().members, 2U);
}

TEST_F(SegmentsPg, TablesWithoutRowsAreNoError) {
  const auto set = loaded();
  ASSERT_TRUE(set);
  EXPECT_THAT(set->names(), IsEmpty());
}

TEST_F(SegmentsPg, ADatabaseFromBeforeSegmentsIsNotFound) {
  sql("DROP TABLE segment_set_version CASCADE");
  EXPECT_EQ(refused().code(), StatusCode::kNotFound);
}

TEST_F(SegmentsPg, ARowThatCannotBeReadIsNamedAndRefusesAll) {
  sql("INSERT INTO segment_members VALUES ('good', 'u1')");
  sql("INSERT INTO segments (id, bitmap) VALUES ('broken', '\\x00112233')");
  EXPECT_EQ(refused().code(), StatusCode::kCorrupt);
  EXPECT_THAT(refused().text(), HasSubstr("segments \"broken\": is not a portable 64-bit roaring"));
  sql("DELETE FROM segments");
  sql("ALTER TABLE segment_members ALTER user_id TYPE text");
  sql("INSERT INTO segment_members VALUES ('long', repeat('x', 300))");
  EXPECT_THAT(refused().text(), HasSubstr("segment_members \"long\": user id: must have 1 to 256"));
}

TEST_F(SegmentsPg, ManyRowsArrive) {
  sql("INSERT INTO segment_members SELECT 'many', CASE WHEN n % 2 = 0 THEN n::text ELSE 'u' || n"
      " END FROM generate_series(1, 300000) n");
  const auto set = loaded();
  EXPECT_EQ(set->memory().members, 300'000U);
  EXPECT_TRUE(set->contains("many", "300000"));
  EXPECT_TRUE(set->contains("many", "u299999"));
  EXPECT_FALSE(set->contains("many", "299999"));
}

TEST_F(SegmentsPg, PollingFindsAChange) {
  Following following(rules(milliseconds{50}, false));
  ASSERT_TRUE(following->wait_for_first_look(kPatience).ok());
  sql("INSERT INTO segment_members VALUES ('vip', 'u1')");
  EXPECT_TRUE(following.reaches("vip", "u1"));
  // Counted once it has been handed out, so a moment later.
  EXPECT_TRUE(wait_until([&] { return following->state().reloads == 2; }, kPatience));
  // Each look is a transaction or more in its database; they are counted from another one.
  const std::string elsewhere = server->new_empty_database();
  const std::string count = "SELECT xact_commit FROM pg_stat_database WHERE datname = '" +
                            value("SELECT current_database()") + "'";
  const auto looks = [&] { return std::stoll(server->value(elsewhere, count)); };
  const long long before = looks();
  EXPECT_TRUE(wait_until([&] { return looks() >= before + 20; }, kPatience)) << looks() - before;
  EXPECT_EQ(following->state().reloads, 2U) << "what has not changed is not read again";
}

TEST_F(SegmentsPg, ANotificationMakesAReloadQuick) {
  Following following(rules(kNever, true));
  ASSERT_TRUE(following->wait_for_first_look(kPatience).ok());
  ASSERT_TRUE(wait_until([&] { return listens(); }));
  sql("INSERT INTO segment_members VALUES ('vip', 'u1')");
  EXPECT_TRUE(following.reaches("vip", "u1")) << "the next poll is an hour away";
}

TEST_F(SegmentsPg, AFailedReloadLeavesTheLastGoodSetAndIsSaidOnce) {
  sql("INSERT INTO segment_members VALUES ('vip', 'u1')");
  Following following(rules(milliseconds{20}, false));
  ASSERT_TRUE(following->wait_for_first_look(kPatience).ok());
  const auto good = following.current();
  sql("INSERT INTO segments (id, bitmap) VALUES ('broken', '\\x00')");
  ASSERT_TRUE(wait_until([&] { return following->state().failed >= 3; }, kPatience));
  EXPECT_EQ(following.current(), good);
  EXPECT_THAT(following->state().last_error, HasSubstr("broken"));
  EXPECT_THAT(following.errors(), ElementsAre(HasSubstr("broken")));
  sql("DELETE FROM segments; INSERT INTO segment_members VALUES ('vip', 'u2')");
  EXPECT_TRUE(following.reaches("vip", "u2"));
  EXPECT_TRUE(wait_until([&] { return following->state().last_error.empty(); }, kPatience));
}

TEST_F(SegmentsPg, ATruncatedTableLeavesTheLastGoodSetUntilTheSegmentIsBack) {
  sql("INSERT INTO segment_members VALUES ('optout', 'u1')");
  Following following(rules(milliseconds{20}, false));
  ASSERT_TRUE(following->wait_for_first_look(kPatience).ok());
  sql("TRUNCATE segment_members");
  ASSERT_TRUE(wait_until([&] { return following->state().failed >= 3; }, kPatience));
  EXPECT_TRUE(following.current()->contains("optout", "u1"));
  EXPECT_THAT(following.errors(), ElementsAre(HasSubstr("\"optout\" has vanished")));
  sql("INSERT INTO segment_members VALUES ('optout', 'u2')");
  EXPECT_TRUE(following.reaches("optout", "u2"));
  EXPECT_TRUE(wait_until([&] { return following->state().last_error.empty(); }, kPatience));
}

TEST_F(SegmentsPg, AFrozenServerDoesNotHoldUpTheDestructor) {
  auto following = std::make_unique<Following>(rules(milliseconds{50}, true));
  ASSERT_TRUE((*following)->wait_for_first_look(kPatience).ok());
  ASSERT_TRUE(wait_until([&] { return listens(); }));
  server->freeze();
  EXPECT_TRUE(wait_until([] { return open_sockets() > 1; }, kPatience)) << "a look waits";
  const auto began = std::chrono::steady_clock::now();
  following.reset();
  // A look takes five minutes at most; whoever needs as long has waited for it.
  EXPECT_LT(std::chrono::steady_clock::now() - began, kPatience);
  server->thaw();
}

TEST_F(SegmentsPg, AReaderNeedsThreeGrants) {
  sql("DROP ROLE IF EXISTS segment_reader; CREATE ROLE segment_reader LOGIN;"
      "GRANT USAGE ON SCHEMA public TO segment_reader;"
      "GRANT SELECT ON segments, segment_members, segment_set_version TO segment_reader;"
      "INSERT INTO segment_members VALUES ('vip', 'u1')");
  std::string as_reader = database_;
  as_reader.replace(as_reader.find("user=postgres"), 13, "user=segment_reader");
  const auto segments = sources::load_segments_from_postgres(as_reader, kPatience);
  ASSERT_TRUE(segments.ok()) << segments.status().text();
  EXPECT_TRUE(segments.value().set->contains("vip", "u1"));
  sql("ALTER TABLE segment_members ENABLE ROW LEVEL SECURITY");
  EXPECT_FALSE(sources::load_segments_from_postgres(as_reader, kPatience).ok())
      << "rows that may not be seen are not rows that are not there";
}

TEST_F(SegmentsPg, AMembersVerdictChangesWithTheTable) {
  sql("INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds, segment)"
      " VALUES ('all', 'campaign', 'c1', 3, 'sliding', 86400, NULL),"
      "        ('never', 'campaign', 'c1', 0, 'sliding', 86400, 'blocked')");
  CheckerOptions options;
  options.store = make_memory_store();
  options.rules = rules(std::chrono::minutes{60}, true);
  options.segments.postgres = true;
  options.deadline = seconds{30};
  auto made = Checker::create(std::move(options));
  ASSERT_TRUE(made.ok()) << made.status().text();
  Checker& checker = *made.value();
  const Candidate candidates[] = {{"c1"}};
  const auto allowed = [&] { return checker.check("4711", candidates).verdicts[0].allowed; };
  EXPECT_TRUE(allowed());
  EXPECT_EQ(checker.stats().segments.reloads, 1U);
  // The listener may not stand yet; once it does, it looks.
  sql("INSERT INTO segments (id, bitmap) VALUES ('blocked', " + bitmap({4711}) + ")");
  ASSERT_TRUE(wait_until([&] { return !allowed(); }, kPatience));
  const CheckerStats stats = checker.stats();
  EXPECT_EQ(stats.segments.version, static_cast<std::uint64_t>(version()));
  EXPECT_EQ(stats.segments.members, 1U);
  EXPECT_GT(stats.segments.bytes, 0U);
  sql("UPDATE segments SET bitmap = NULL");
  EXPECT_TRUE(wait_until([&] { return allowed(); }, kPatience));
}

}  // namespace segments_pg_test
}  // namespace fcap
