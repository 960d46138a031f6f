#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "updater/commands/command_line.h"
#include "updater/commands/commands.h"
#include "updater/metrics/exposition.h"
#include "updater/metrics/list.h"
#include "updater/metrics/metrics.h"
#include "updater/metrics/rules_note.h"
#include "updater/metrics/updater_health.h"
#include "updater/process/log_members.h"
#include "updater/process/process_log.h"

namespace fcap::updater {
namespace daemon_parts_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Health::Clock::time_point kStart{1000s};

TEST(HealthState, ALoopWithoutABeatIsNotHealthy) {
  Health health(30s);
  EXPECT_FALSE(health.healthy(kStart));
  health.beat(kStart);
  EXPECT_TRUE(health.healthy(kStart + 29s));
  EXPECT_FALSE(health.healthy(kStart + 30s));
}

TEST(RulesNote, NamesWhatIsRefusedAndWhatIsQuarantined) {
  sources::RefreshState state;
  state.reloads = 1;
  state.version = 10;
  state.age = 90s;
  EXPECT_EQ(rules_note(state), "");
  state.last_error = "rules: version 11 is refused, it has shrunk";
  state.quarantined = {"rule \"too-long\": window length 100d\nis too much"};
  state.quarantined_count = 3;
  EXPECT_EQ(
      rules_note(state),
      "rules: still version 10, last known to be current 90 s ago: rules: version 11 is "
      "refused, it has shrunk\n"
      "rules: quarantined and not in force: rule \"too-long\": window length 100d is too much\n"
      "rules: and 2 more are quarantined\n");
}

TEST(HealthState, ReadyNamesEveryReasonItIsNot) {
  Health health(30s);
  bool rules = false;
  health.rules_check([&] { return rules; });
  std::string why;
  EXPECT_FALSE(health.ready(kStart, why));
  EXPECT_EQ(std::ranges::count(why, '\n'), 3);
  health.beat(kStart);
  health.set_assigned(true);
  EXPECT_FALSE(health.ready(kStart, why));
  EXPECT_EQ(why, "no rules have been loaded\n");
  rules = true;
  EXPECT_TRUE(health.ready(kStart, why));
  EXPECT_EQ(why, "");
  health.set_problem(Health::Problem::kMarks, "partition 0: NOPERM");
  health.set_problem(Health::Problem::kDeadLetters, "no such topic");
  EXPECT_FALSE(health.ready(kStart, why));
  EXPECT_EQ(why, "partition 0: NOPERM\nno such topic\n");
  health.set_problem(Health::Problem::kMarks, "");
  health.set_problem(Health::Problem::kDeadLetters, "");
  EXPECT_TRUE(health.ready(kStart, why));
}

TEST(HealthState, TheWatchdogIsFedByBeatsAtItsInterval) {
  Health health(30s);
  int fed = 0;
  health.on_beat(2s, [&] { ++fed; });
  for (int i = 0; i < 10; ++i) health.beat(kStart + i * 1s);
  EXPECT_EQ(fed, 5);
}

TEST(RepeatedLogLines, TheFirstIsWrittenThenOneAnInterval) {
  RepeatedLog log(10s);
  const RepeatedLog::Clock::time_point start{};  // the clock's own beginning is no special time
  EXPECT_TRUE(log.take_turn(start).write);
  EXPECT_FALSE(log.take_turn(start + 1s).write);
  EXPECT_FALSE(log.take_turn(start + 9s).write);
  const auto turn = log.take_turn(start + 10s);
  EXPECT_TRUE(turn.write);
  EXPECT_EQ(turn.left_out, 2U);
}

std::string logged(LogSettings::Format format, const std::string& text) {
  ::testing::internal::CaptureStderr();
  configure_logging({.format = format});
  spdlog::info("{}", text);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Log, TextIsForPeopleAndKeepsToItsLine) {
  const std::string line = logged(LogSettings::Format::kText, "say \"hi\" \\ a\tb\nc\x1b[31md é");
  EXPECT_THAT(line, ::testing::EndsWith(" info say \"hi\" \\ a b; c\\x1b[31md é\n"));
}

TEST(Log, JsonIsValidWhateverTheText) {
  const std::string text = "say \"hi\" \\ a\tb\nc\x1b[31md é";
  const auto parsed =
      nlohmann::json::parse(logged(LogSettings::Format::kJson, text), nullptr, false);
  ASSERT_TRUE(parsed.is_object());
  EXPECT_EQ(parsed["text"], text);
  configure_logging({});
}

TEST(Log, JsonHasMembersOfWhatTheTextSays) {
  const auto parsed = nlohmann::json::parse(
      logged(LogSettings::Format::kJson,
             "pipeline: partition 3: its mark cannot be written: refused: NOPERM this user"),
      nullptr, false);
  ASSERT_TRUE(parsed.is_object());
  EXPECT_EQ(parsed["partition"], 3);
  EXPECT_EQ(parsed["code"], "NOPERM");
  EXPECT_FALSE(parsed.contains("offset"));
  EXPECT_EQ(log_members("partition 1, offset 42: rejected").offset, 42);
  EXPECT_EQ(log_members("no partition at all, Redis: READY").code, "");
  EXPECT_EQ(log_members("3 of 9 appends failed (OOM command not allowed)").code, "OOM");
  EXPECT_FALSE(log_members("partitions 1 and 2").partition.has_value());
  configure_logging({});
}

TEST(Log, ToTheJournalALineHasItsPriorityAndNoTime) {
  ::testing::internal::CaptureStderr();
  struct stat about = {};
  ASSERT_EQ(fstat(STDERR_FILENO, &about), 0);
  const std::string stream = fmt::format("{}:{}", about.st_dev, about.st_ino);
  setenv("JOURNAL_STREAM", stream.c_str(), 1);
  configure_logging({});
  spdlog::warn("careful");
  spdlog::error("{}", "wrong");
  configure_logging({.format = LogSettings::Format::kJson});
  spdlog::info("fine");
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, ::testing::StartsWith("<4>careful\n<3>wrong\n<6>{\"time\":"));
  // Inherited from somebody whose standard error went there.
  ::testing::internal::CaptureStderr();
  setenv("JOURNAL_STREAM", "1:1", 1);
  configure_logging({});
  spdlog::warn("careful");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::EndsWith("Z warning careful\n"));
  unsetenv("JOURNAL_STREAM");
  configure_logging({});
}

TEST(Log, APartIsNamedOnce) {
  ::testing::internal::CaptureStderr();
  configure_logging({});
  const LogCallback log = log_callback("rules");
  log(LogLevel::kWarning, "rules: version 11 is refused");
  log(LogLevel::kWarning, "version 12 is taken");
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("warning rules: version 11"));
  EXPECT_THAT(lines, HasSubstr("warning rules: version 12"));
}

TEST(MetricsText, IsAsPromtoolWantsIt) {
  if (std::system("command -v promtool > /dev/null") != 0) GTEST_SKIP() << "promtool is missing";
  Metrics metrics;
  metrics.event_delay.observe(1000us, 2);
  Lag lag;
  lag.messages = 1;
  lag.by_partition[0] = 1;
  lag.oldest = Instant{5s};
  const MetricsExposition exposition(metrics, {.rules = [] { return sources::RefreshState(); },
                                               .ready = [] { return true; },
                                               .kafka_connected = [] { return true; },
                                               .lag = [&] { return lag; },
                                               .redis_connected = [] { return true; },
                                               .redis_connection_changes = [] { return 5; }});
  FILE* const promtool = popen("promtool check metrics 2>&1 >&2", "w");
  ASSERT_NE(promtool, nullptr);
  const std::string text = exposition.text();
  std::fwrite(text.data(), 1, text.size(), promtool);
  EXPECT_EQ(pclose(promtool), 0);
}

TEST(MetricsText, TheProcessIsThereAndRulesThatNeverCameHaveNoAge) {
  const Metrics metrics;
  const std::string text = MetricsExposition(metrics, {.rules =
                                                           [] {
                                                             sources::RefreshState state;
                                                             state.age =
                                                                 std::chrono::milliseconds{-1};
                                                             return state;
                                                           }})
                               .text();
  EXPECT_THAT(text, HasSubstr("\nprocess_resident_memory_bytes "));
  EXPECT_THAT(text, HasSubstr("\nprocess_cpu_seconds_total "));
  EXPECT_THAT(text, HasSubstr("\nfcap_updater_rules "));
  EXPECT_THAT(text, Not(HasSubstr("rule_set_age_seconds")));
}

TEST(MetricsText, CountersGaugesHistogramsAndReasons) {
  Metrics metrics;
  metrics.messages.add(7);
  metrics.in_flight_bytes.set(-3);
  metrics.rejected[3].add(2);
  metrics.event_delay.observe(1000us, 2);
  metrics.event_delay.observe(1001us);
  metrics.event_delay.observe(3600s);
  const std::string text = MetricsExposition(metrics, {}).text();
  EXPECT_THAT(text, HasSubstr("# TYPE fcap_updater_messages_total counter\n"));
  EXPECT_THAT(text, HasSubstr("fcap_updater_messages_total 7\n"));
  EXPECT_THAT(text, HasSubstr("fcap_updater_in_flight_bytes -3\n"));
  EXPECT_THAT(text, HasSubstr("fcap_updater_events_rejected_total{reason=\"wrong_type\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("fcap_updater_event_delay_seconds_bucket{le=\"0.001\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("fcap_updater_event_delay_seconds_bucket{le=\"0.002\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("fcap_updater_event_delay_seconds_bucket{le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("fcap_updater_event_delay_seconds_count 4\n"));
  EXPECT_THAT(text, Not(HasSubstr("rule_set")));
}

TEST(MetricsText, ALevelThatIsNotKnownHasNoSample) {
  Metrics metrics;
  const MetricsExposition exposition(metrics, {});
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_gap_offsets 0\n"));
  metrics.gap_offsets.set(Gauge::kUnknown);
  EXPECT_THAT(exposition.text(), Not(HasSubstr("fcap_updater_gap_offsets ")));
}

TEST(MetricsText, LagIsAskedAtTheScrapeAndWhatIsUnknownHasNoSample) {
  const Metrics metrics;
  Lag lag;
  lag.topic = "t";
  const MetricsExposition exposition(metrics, {.lag = [&] { return lag; }});
  EXPECT_THAT(exposition.text(), Not(HasSubstr("lag_messages")));
  EXPECT_THAT(exposition.text(), Not(HasSubstr("oldest_unacknowledged")));
  lag.by_partition = {{0, 0}, {12, 345}};
  EXPECT_THAT(exposition.text(),
              HasSubstr("# TYPE fcap_updater_partition_lag_messages gauge\n"
                        "fcap_updater_partition_lag_messages{topic=\"t\",partition=\"0\"} 0\n"
                        "fcap_updater_partition_lag_messages{topic=\"t\",partition=\"12\"} 345\n"));
  EXPECT_THAT(exposition.text(), Not(HasSubstr("fcap_updater_lag_messages{")));
  lag.messages = 345;
  lag.oldest = instant_from_ms(1'700'000'000'500);
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_lag_messages{topic=\"t\"} 345\n"));
  EXPECT_THAT(exposition.text(),
              HasSubstr("oldest_unacknowledged_event_timestamp_seconds{topic=\"t\"} 1700000000.5"));
}

TEST(MetricsText, ReadyAndKafkaAreGauges) {
  const Metrics metrics;
  bool ready = false;
  const MetricsExposition exposition(
      metrics, {.ready = [&] { return ready; }, .kafka_connected = [&] { return !ready; }});
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_ready 0\n"));
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_kafka_connected 1\n"));
  ready = true;
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_ready 1\n"));
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_kafka_connected 0\n"));
}

TEST(MetricsText, RulesAndRedisAreAskedAtTheScrape) {
  const Metrics metrics;
  bool connected = false;
  const MetricsExposition exposition(metrics, {.rules =
                                                   [] {
                                                     sources::RefreshState state;
                                                     state.version = 9;
                                                     state.age = std::chrono::milliseconds{1500};
                                                     return state;
                                                   },
                                               .redis_connected = [&] { return connected; },
                                               .redis_connection_changes = [] { return 5; }});
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_redis_connected 0\n"));
  connected = true;
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_redis_connected 1\n"));
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_rule_set_version 9\n"));
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_rule_set_age_seconds 1.5\n"));
  EXPECT_THAT(exposition.text(), HasSubstr("fcap_updater_redis_connection_changes_total 5\n"));
}

TEST(MetricsText, EveryMetricOfTheListIsThereAndNamedOnce) {
  std::vector<std::string_view> names;
  for (const MetricInfo& info : metric_list()) names.push_back(info.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  // Every counter and gauge is one of the list; a new one that is forgotten there fails here.
  std::size_t listed_bytes = 0;
  for (const MetricInfo& info : metric_list()) {
    if (std::holds_alternative<Counter Metrics::*>(info.source)) listed_bytes += sizeof(Counter);
    if (std::holds_alternative<Gauge Metrics::*>(info.source)) listed_bytes += sizeof(Gauge);
    if (std::holds_alternative<DurationHistogram Metrics::*>(info.source)) {
      listed_bytes += sizeof(DurationHistogram);
    }
    if (std::holds_alternative<std::array<Counter, Metrics::kRejections> Metrics::*>(info.source)) {
      listed_bytes += sizeof(Metrics::rejected);
    }
  }
  EXPECT_EQ(listed_bytes, sizeof(Metrics));
}

TEST(TimeFlag, TimesLengthsBeforeNowAndMilliseconds) {
  const Instant now = instant_from_ms(1'700'000'000'000);
  EXPECT_EQ(parse_time_flag("now", now), now);
  EXPECT_EQ(parse_time_flag("-24h", now), now - std::chrono::hours{24});
  EXPECT_EQ(parse_time_flag("2023-11-14T22:13:20Z", now), now);
  EXPECT_EQ(parse_time_flag("1700000000000", now), now);
  for (const char* text : {"", "-", "-24", "24h", "1700000000", "yesterday", "2023-11-14"}) {
    EXPECT_FALSE(parse_time_flag(text, now).has_value()) << text;
  }
}

std::optional<CommandLine> parse(std::vector<const char*> words, int& exit_code) {
  words.insert(words.begin(), "fcap-updater");
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  auto line = parse_command_line(static_cast<int>(words.size()), words.data(), exit_code);
  ::testing::internal::GetCapturedStdout();
  ::testing::internal::GetCapturedStderr();
  return line;
}

std::vector<std::string> mistakes_of(const std::vector<const char*>& words) {
  int exit_code = -1;
  const auto line = parse(words, exit_code);
  return line ? line->sources.mistakes : std::vector<std::string>{"ended at once"};
}

TEST(CommandLineFlags, MistakesAreLeftToTheRestOfTheSettings) {
  EXPECT_THAT(
      mistakes_of({"run", "--kafka.topik", "t", "stray", "--nonsense=5"}),
      ::testing::ElementsAre("--kafka.topik: unknown option; did you mean --kafka.topic?",
                             "\"stray\": unexpected argument", "--nonsense: unknown option"));
  EXPECT_THAT(mistakes_of({"--kafka.topic", "t", "run"}),
              ::testing::ElementsAre("--kafka.topic: must follow the command"));
  // Which file it should be in is said where settings are judged.
  int exit_code = -1;
  const auto secret = parse({"run", "--redis.password", "hunter2"}, exit_code);
  ASSERT_TRUE(secret.has_value());
  EXPECT_THAT(secret->sources.mistakes, ::testing::IsEmpty());
  EXPECT_THAT(secret->sources.flags,
              ::testing::ElementsAre(::testing::Pair("redis.password", "hunter2")));
}

TEST(CommandLineFlags, AnEmptyValueIsNotTheNextArgument) {
  int exit_code = -1;
  const auto line = parse({"run", "--kafka.dead_letter_topic=", "--kafka.topic", "t"}, exit_code);
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(line->sources.flags,
              ::testing::UnorderedElementsAre(::testing::Pair("kafka.dead_letter_topic", ""),
                                              ::testing::Pair("kafka.topic", "t")));
}

TEST(CommandLineFlags, OffsetsAreOfEveryPartitionOrOfSingleOnes) {
  int exit_code = -1;
  auto line = parse({"replay", "--from-offset", "12", "--to-offset", "0:5,3:7"}, exit_code);
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(line->sources.mistakes, ::testing::IsEmpty());
  EXPECT_EQ(line->replay.from_offset.everywhere, 12);
  EXPECT_EQ(line->replay.to_offset.everywhere, std::nullopt);
  EXPECT_THAT(line->replay.to_offset.of_partition,
              ::testing::ElementsAre(::testing::Pair(0, 5), ::testing::Pair(3, 7)));
  for (const char* text : {"0,5", "-1", "a", "1:", ":1", "1:a", "1:2,", "5.5"}) {
    EXPECT_THAT(mistakes_of({"replay", "--from-offset", text}),
                ::testing::ElementsAre(HasSubstr("expected a whole number")))
        << text;
  }
  for (const char* text : {"a", "0,", "-1", "0:1", "4294967296"}) {
    EXPECT_THAT(mistakes_of({"replay", "--partitions", text}),
                ::testing::ElementsAre(HasSubstr("expected a whole number")))
        << text;
  }
}

TEST(CommandLineFlags, ARangeThatEndsBeforeItBeginsIsAMistake) {
  EXPECT_THAT(mistakes_of({"replay", "--from", "now", "--to", "-24h"}),
              ::testing::ElementsAre(HasSubstr("ends before it begins")));
  EXPECT_THAT(mistakes_of({"replay", "--from-offset", "5", "--to-offset", "5"}),
              ::testing::ElementsAre(HasSubstr("ends before it begins")));
}

TEST(CommandLineFlags, SettingsReplayAndMistakes) {
  int exit_code = -1;
  const auto line = parse({"replay", "--from", "-24h", "--to", "now", "--partitions", "0,3",
                           "--rate", "1000", "--max-memory", "8GiB", "--kafka.topic", "t",
                           "--kafka.properties", "a=b", "--kafka.properties", "c=d", "--json"},
                          exit_code);
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->command, CommandLine::Command::kReplay);
  EXPECT_TRUE(line->json);
  EXPECT_EQ(*line->replay.to_time - *line->replay.from_time, std::chrono::hours{24});
  EXPECT_EQ(line->replay.partitions, (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(line->replay.redis_bytes_max, std::int64_t{8} << 30);
  EXPECT_THAT(line->sources.flags,
              ::testing::UnorderedElementsAre(::testing::Pair("kafka.topic", "t"),
                                              ::testing::Pair("kafka.properties", "a=b"),
                                              ::testing::Pair("kafka.properties", "c=d")));

  EXPECT_FALSE(parse({"replay", "--from", "yesterday"}, exit_code).has_value());
  EXPECT_EQ(exit_code, kExitUsage);
  EXPECT_FALSE(parse({"replay", "--from", "-1h", "--from-offset", "5"}, exit_code).has_value());
  EXPECT_EQ(exit_code, kExitUsage);
  EXPECT_FALSE(parse({"bogus"}, exit_code).has_value());
  EXPECT_EQ(exit_code, kExitUsage);
  EXPECT_FALSE(parse({"reference", "configuration", "more"}, exit_code).has_value());
  EXPECT_EQ(exit_code, kExitUsage);
  EXPECT_FALSE(parse({}, exit_code).has_value());
  EXPECT_EQ(exit_code, kExitUsage);
  EXPECT_FALSE(parse({"run", "--help"}, exit_code).has_value());
  EXPECT_EQ(exit_code, kExitOk);
}

TEST(CommandLineTest, AReplaysEndHasItsExitCode) {
  using enum ReplaySummary::ReplayEnd;
  EXPECT_EQ(exit_code_of(kComplete), 0);
  EXPECT_EQ(exit_code_of(kStopped), 3);
  EXPECT_EQ(exit_code_of(kMemory), 4);
  EXPECT_EQ(exit_code_of(kLost), 5);
}

}  // namespace daemon_parts_test
}  // namespace fcap::updater
