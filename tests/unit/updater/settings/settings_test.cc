#include "updater/settings/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "updater/options/libraries.h"
#include "updater/settings/field_value.h"
#include "updater/settings/fields.h"
#include "updater/settings/load_settings.h"
#include "updater/settings/redis_target.h"
#include "updater/settings/reference.h"

namespace fcap::updater {
namespace settings_test {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// A directory of its own, removed at the end.
class Directory {
 public:
  Directory() {
    char name[] = "/tmp/fcap-settings-XXXXXX";
    path_ = mkdtemp(name) == nullptr ? "" : name;
  }
  ~Directory() {
    for (const std::string& file : files_) std::remove(file.c_str());
    rmdir(path_.c_str());
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::string write(const std::string& name, const std::string& bytes) {
    files_.push_back(path_ + "/" + name);
    std::ofstream(files_.back(), std::ios::binary) << bytes;
    return files_.back();
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

class SettingsFile : public ::testing::Test {
 protected:
  Result<LoadedSettings> load(const std::string& json) {
    sources_.file_path = directory_.write("updater.json", json);
    return load_settings(sources_);
  }
  std::string mistakes_of(const std::string& json) {
    const auto loaded = load(json);
    return loaded.ok() ? "none" : loaded.status().text();
  }

  Directory directory_;
  SettingSources sources_;
};

TEST_F(SettingsFile, WithoutAnythingTheDefaultsHold) {
  const auto loaded = load_settings({});
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  EXPECT_TRUE(loaded.value().origins.empty());
  EXPECT_EQ(loaded.value().settings.kafka.topic, "impressions");
}

TEST_F(SettingsFile, EveryKindOfValueIsRead) {
  const auto loaded = load(R"({
    // A comment.
    "kafka": {"brokers": ["a:1", "b:2"], "assignment": "cooperative-sticky",
              "properties": {"security.protocol": "ssl", "session.timeout.ms": 10000}},
    "rules": {"listen": false, "shrink_refused_below": 0.25}, /* another */
    "ledger": {"retention": "48h", "record_bytes_max": "32KiB", "null_user_ids": []},
    "pipeline": {"batch_events_max": 17, "mark_interval": "0ms"}
  })");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  const Settings& settings = loaded.value().settings;
  EXPECT_EQ(settings.kafka.brokers, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(settings.kafka.assignment, KafkaSettings::Assignment::kCooperativeSticky);
  EXPECT_EQ(settings.kafka.properties.at("session.timeout.ms"), "10000");
  EXPECT_FALSE(settings.rules.listen);
  EXPECT_EQ(settings.rules.shrink_refused_below, 0.25);
  EXPECT_EQ(settings.ledger.retention, std::chrono::hours{48});
  EXPECT_EQ(settings.ledger.record_bytes_max, 32 * 1024);
  EXPECT_TRUE(settings.ledger.null_user_ids.empty());
  EXPECT_EQ(settings.pipeline.batch_events_max, 17);
  EXPECT_EQ(settings.pipeline.mark_interval, 0ms);
  EXPECT_EQ(loaded.value().origins.at("ledger.retention"), "file");
}

TEST_F(SettingsFile, AllMistakesAreReportedAtOnceEachWithItsPlace) {
  sources_.environment = {{"FCAP_UPDATER_REDIS_DATABSE", "1"}, {"HOME", "/root"}};
  sources_.flags = {{"http.port", "70000"}};
  const std::string text = mistakes_of(R"({
    "kafka": {"broker": ["x"], "topic": 5, "properties": {"no.such.thing": "1"}},
    "redsi": {}, "log": 3,
    "redis": {"database": -1, "addresses": ["nowhere"]},
    "pipeline": {"commit_interval": 5, "mark_interval": "5 s"},
    "rules": {"listen": "yes"}, "compaction": {"tail_share": 1e9}
  })");
  for (const char* part :
       {"updater.json: kafka.broker: unknown name; did you mean kafka.brokers?",
        "kafka.topic: expected text", "redsi: unknown name; did you mean redis?",
        "log: expected an object", "redis.database: expected number, 0 to 1023",
        "redis.addresses: ", "pipeline.commit_interval: expected duration", "with its unit",
        "pipeline.mark_interval: expected duration", ", not \"5 s\"",
        "rules.listen: expected true or false, not \"yes\"",
        "compaction.tail_share: expected share", "no.such.thing",
        "FCAP_UPDATER_REDIS_DATABSE: unknown name; did you mean FCAP_UPDATER_REDIS_DATABASE?",
        "--http.port: expected number, 0 to 65535"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("HOME")));
}

TEST_F(SettingsFile, SentinelsAreNamedBySettings) {
  const auto loaded = load(R"({"redis": {"topology": "sentinel", "addresses": ["s1:1", "s2:2"],
                                         "sentinel_master": "main", "sentinel_user": "asker"}})");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  const RedisOptions options = redis_options(loaded.value().settings, {});
  EXPECT_EQ(options.topology, RedisTopology::kSentinel);
  EXPECT_THAT(options.addresses, ::testing::ElementsAre("s1:1", "s2:2"));
  EXPECT_EQ(options.sentinel_master, "main");
  EXPECT_EQ(options.sentinel_user, "asker");
  EXPECT_TRUE(options.master_only);
  EXPECT_THAT(mistakes_of(R"({"redis": {"topology": "sentinel"}})"),
              HasSubstr("redis.sentinel_master: topology sentinel needs the master's name"));
  EXPECT_THAT(mistakes_of(R"({"redis": {"addresses": ["a:1", "b:2"]}})"),
              HasSubstr("redis.addresses: topology single takes one address"));
}

TEST_F(SettingsFile, AClusterIsNamedBySettings) {
  const auto loaded = load(R"({"redis": {"topology": "cluster", "addresses": ["n1:1", "n2:2"]}})");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  const RedisOptions options = redis_options(loaded.value().settings, {});
  EXPECT_EQ(options.topology, RedisTopology::kCluster);
  EXPECT_THAT(options.addresses, ::testing::ElementsAre("n1:1", "n2:2"));
  EXPECT_THAT(mistakes_of(R"({"redis": {"topology": "cluster", "database": 1}})"),
              HasSubstr("a cluster has only 0"));
}

TEST_F(SettingsFile, RedisMayBeNamedByAUrl) {
  // As from a variable, whose list is split at commas.
  sources_.environment = {
      {"FCAP_UPDATER_REDIS_ADDRESSES", "redis-sentinel://app:se,cret@s1,s2:7/main/3"}};
  const auto loaded = load_settings(sources_);
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  const RedisOptions options = redis_options(loaded.value().settings, {});
  EXPECT_THAT(options.addresses, ::testing::ElementsAre("s1:26379", "s2:7"));
  EXPECT_EQ(options.password, "se,cret");
  EXPECT_EQ(options.database, 3);
  for (const bool as_json : {false, true}) {
    const std::string shown = effective_configuration(loaded.value(), as_json);
    EXPECT_THAT(shown, AllOf(HasSubstr("redis-sentinel://app:****@s1,s2:7/main/3"),
                             Not(HasSubstr("cret"))));
  }
  for (const char* url : {"redis://app:@h:1", "redis://app@h:1", "redis://h:1"}) {
    sources_.environment = {{"FCAP_UPDATER_REDIS_ADDRESSES", url}};
    const auto open = load_settings(sources_);
    ASSERT_TRUE(open.ok()) << url << open.status().text();
    EXPECT_THAT(effective_configuration(open.value(), false),
                HasSubstr("\"" + std::string(url) + "\""));
  }
  sources_.environment.clear();
  EXPECT_THAT(mistakes_of(R"({"redis": {"addresses": ["app:secret@h:1"]}})"),
              AllOf(HasSubstr("redis.addresses: "), Not(HasSubstr("app:secret"))));
  EXPECT_THAT(
      mistakes_of(R"({"redis": {"addresses": ["redis://app:secret@h"]}})"),
      AllOf(HasSubstr("redis.addresses: the URL holds a password"), Not(HasSubstr("app:secret"))));
  EXPECT_THAT(mistakes_of(R"({"redis": {"addresses": ["redis://h/x"]}})"),
              HasSubstr("redis.addresses: redis URL: \"x\" is not the number"));
  EXPECT_EQ(mistakes_of(R"({"redis": {"addresses": ["redis://app@h"]}})"), "none");
}

TEST_F(SettingsFile, BrokenJsonIsNamedWithItsPlace) {
  EXPECT_THAT(mistakes_of("{\n  \"kafka\": {,}\n}"), HasSubstr("line 2"));
  EXPECT_THAT(mistakes_of(""), HasSubstr("parse error"));
  EXPECT_THAT(mistakes_of("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(mistakes_of("{} {}"), HasSubstr("parse error"));
}

TEST_F(SettingsFile, AMemberGivenTwiceIsAMistake) {
  EXPECT_THAT(mistakes_of(R"({"kafka": {"topic": "a", "topic": "b"}})"),
              HasSubstr("\"topic\" is given twice"));
}

TEST_F(SettingsFile, AMissingOrHugeFileIsNamed) {
  sources_.file_path = directory_.path() + "/none.json";
  EXPECT_THAT(load_settings(sources_).status().text(),
              AllOf(HasSubstr("none.json"), HasSubstr("No such file")));
  EXPECT_THAT(mistakes_of(std::string(2 << 20, ' ')), HasSubstr("larger than 1 MiB"));
}

TEST_F(SettingsFile, FlagsBeatTheEnvironmentAndThatBeatsTheFile) {
  sources_.environment = {{"FCAP_UPDATER_KAFKA_TOPIC", "of-environment"},
                          {"FCAP_UPDATER_KAFKA_GROUP_ID", "of-environment"},
                          {"FCAP_UPDATER_KAFKA_BROKERS", "a:1,b:2"},
                          {"FCAP_UPDATER_CONFIG", "/looked/at/elsewhere"}};
  sources_.flags = {{"kafka.topic", "of-flag"},
                    {"kafka.properties", "fetch.min.bytes=10"},
                    {"kafka.properties", "client.rack=r1"}};
  const auto loaded = load(R"({"kafka": {"topic": "t", "group_id": "g", "client_id": "c"}})");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  const KafkaSettings& kafka = loaded.value().settings.kafka;
  EXPECT_EQ(kafka.topic, "of-flag");
  EXPECT_EQ(kafka.group_id, "of-environment");
  EXPECT_EQ(kafka.client_id, "c");
  EXPECT_EQ(kafka.brokers, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(kafka.properties.size(), 2U);
  EXPECT_EQ(loaded.value().origins.at("kafka.group_id"), "environment");
}

TEST_F(SettingsFile, SecretsComeFromFilesCredentialsAndTheEnvironmentOnly) {
  EXPECT_THAT(mistakes_of(R"({"redis": {"password": "hunter2"}})"),
              AllOf(HasSubstr("redis.password_file"), Not(HasSubstr("hunter2"))));
  sources_.flags = {{"redis.password", "hunter2"}};
  EXPECT_THAT(mistakes_of("{}"),
              AllOf(HasSubstr("--redis.password_file"), Not(HasSubstr("hunter2"))));
  sources_.flags.clear();

  const std::string file = directory_.write("secret", "of-file\n");
  auto loaded = load(R"({"redis": {"password_file": ")" + file + "\"}}");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  EXPECT_EQ(loaded.value().settings.redis.password, "of-file");

  directory_.write("postgres-password", "of-credential");
  sources_.credentials_directory = directory_.path();
  sources_.environment = {{"FCAP_UPDATER_KAFKA_SASL_PASSWORD", "of-environment"}};
  loaded = load("{}");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  EXPECT_EQ(loaded.value().settings.postgres.password, "of-credential");
  EXPECT_EQ(loaded.value().settings.kafka.sasl_password, "of-environment");
  EXPECT_EQ(loaded.value().settings.redis.password, "");
}

TEST_F(SettingsFile, AnEmptyOrMissingSecretFileIsAMistake) {
  const std::string empty = directory_.write("empty", "\n");
  EXPECT_THAT(mistakes_of(R"({"redis": {"password_file": ")" + empty + "\"}}"),
              HasSubstr("redis.password_file: it is empty"));
  EXPECT_THAT(mistakes_of(R"({"redis": {"password_file": "/no/such/file"}})"),
              HasSubstr("cannot read /no/such/file"));
}

TEST_F(SettingsFile, ContradictionsAreMistakes) {
  EXPECT_THAT(mistakes_of(R"({"kafka": {"topic": "t", "dead_letter_topic": "t"}})"),
              HasSubstr("kafka.dead_letter_topic"));
  EXPECT_THAT(mistakes_of(R"({"kafka": {"properties": {"enable.auto.commit": true}}})"),
              HasSubstr("after Redis has acknowledged"));
  EXPECT_THAT(mistakes_of(R"({"pipeline": {"retry_backoff_min": "60s"}})"),
              HasSubstr("retry_backoff_min"));
  EXPECT_THAT(mistakes_of(R"({"pipeline": {"in_flight_bytes_max": "1KiB"}})"),
              HasSubstr("pipeline.in_flight_bytes_max"));
  EXPECT_THAT(mistakes_of(R"({"ledger": {"key_prefix": "a{b"}})"), HasSubstr("key_prefix"));
  EXPECT_THAT(mistakes_of(R"({"postgres": {"conninfo": "host"}})"), HasSubstr("postgres.conninfo"));
  EXPECT_THAT(mistakes_of(R"({"postgres": {"conninfo": "postgresql://u:pw@h/db"}})"),
              AllOf(HasSubstr("postgres.password_file"), Not(HasSubstr("pw@"))));
}

TEST_F(SettingsFile, BrokersAndTopicsAreOnesThatKafkaTakes) {
  const auto with = [&](const std::string& name, const std::string& value) {
    sources_.flags = {{name, value}};
    return mistakes_of("{}");
  };
  for (const char* broker :
       {"a:9092", "a", "a.b-c_d:1", "10.0.0.1:65535", "[::1]:9092", "[::1]", "SSL://a:1"}) {
    EXPECT_EQ(with("kafka.brokers", broker), "none") << broker;
  }
  for (const char* broker : {"bad host:port:xx", ":9092", "a:99999", "a:0", "a:", "a:b", "::1",
                             "a:-1", "SSL://", "[x]:1", "a/b:1"}) {
    EXPECT_THAT(with("kafka.brokers", broker), HasSubstr("kafka.brokers: ")) << broker;
  }
  for (const std::string& topic : {std::string("a b/c"), std::string("."), std::string("..")}) {
    EXPECT_THAT(with("kafka.topic", topic), HasSubstr("kafka.topic: ")) << topic;
    EXPECT_THAT(with("kafka.dead_letter_topic", topic), HasSubstr("kafka.dead_letter_topic: "));
  }
  EXPECT_THAT(with("kafka.topic", std::string(250, 't')), HasSubstr("kafka.topic: "));
  EXPECT_EQ(with("kafka.topic", std::string(249, 't')), "none");
  EXPECT_EQ(with("kafka.dead_letter_topic", ""), "none");
}

TEST_F(SettingsFile, AnUpdaterReadsOneTopic) {
  const std::string sentence = "names several topics: run one updater per topic";
  EXPECT_THAT(mistakes_of(R"({"kafka": {"topic": ["a", "b"]}})"),
              EndsWith("updater.json: kafka.topic: " + sentence));
  EXPECT_THAT(mistakes_of(R"({"kafka": {"topic": ["a"]}})"),
              HasSubstr("kafka.topic: expected text"));
  sources_.environment = {{"FCAP_UPDATER_KAFKA_TOPIC", "a,b"}};
  EXPECT_EQ(mistakes_of("{}"), "FCAP_UPDATER_KAFKA_TOPIC: " + sentence);
  sources_.environment.clear();
  sources_.flags = {{"kafka.topic", "a,b"}};
  EXPECT_EQ(mistakes_of("{}"), "--kafka.topic: " + sentence);
}

TEST_F(SettingsFile, TheHttpAddressIsOneToListenOn) {
  for (const char* address : {"127.0.0.1", "0.0.0.0", "::", "[::1]", "localhost"}) {
    sources_.flags = {{"http.address", address}};
    EXPECT_EQ(mistakes_of("{}"), "none") << address;
  }
  for (const char* address : {"nonsense", "127.0.0.1:80", "256.0.0.1", "[::1", " 127.0.0.1"}) {
    sources_.flags = {{"http.address", address}};
    EXPECT_THAT(mistakes_of("{}"), HasSubstr("http.address: ")) << address;
  }
}

TEST_F(SettingsFile, WhatTheCommandLineFoundIsReportedWithTheRest) {
  sources_.mistakes = {"--nonsense: unknown option"};
  EXPECT_THAT(mistakes_of(R"({"http": {"port": -1}})"),
              AllOf(HasSubstr("--nonsense"), HasSubstr("http.port")));
}

TEST_F(SettingsFile, TheSampleIsTheDefaults) {
  const auto loaded = load(sample_configuration());
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  for (const Field& field : fields()) {
    EXPECT_EQ(value_as_json(field, loaded.value().settings), value_as_json(field, Settings{}))
        << field.name;
    const bool secret = std::holds_alternative<SecretKind>(field.kind);
    EXPECT_EQ(loaded.value().origins.count(field.name), secret ? 0U : 1U) << field.name;
  }
}

TEST_F(SettingsFile, WhatIsPrintedHoldsNoSecret) {
  sources_.environment = {{"FCAP_UPDATER_REDIS_PASSWORD", "hunter2"},
                          {"FCAP_UPDATER_POSTGRES_CONNINFO",
                           "host=h dbname=d password=hunter2 sslpassword='hunter2 too'"}};
  const auto loaded = load(R"({"kafka": {"properties": {"ssl.key.password": "hunter2"}}})");
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  for (const bool json : {false, true}) {
    const std::string text = effective_configuration(loaded.value(), json);
    EXPECT_THAT(text, Not(HasSubstr("hunter2")));
    EXPECT_THAT(text, HasSubstr("(set)"));
    EXPECT_THAT(text, HasSubstr("dbname='d'"));
  }
  const auto parsed = nlohmann::json::parse(effective_configuration(loaded.value(), true));
  EXPECT_EQ(parsed["settings"]["kafka"]["topic"], "impressions");
  EXPECT_EQ(parsed["origins"]["redis.password"], "environment");
}

TEST_F(SettingsFile, AConnectionStringFromTheEnvironmentIsNotQuoted) {
  sources_.environment = {{"FCAP_UPDATER_POSTGRES_CONNINFO", "host=h password=my hunter2"}};
  EXPECT_THAT(mistakes_of("{}"),
              AllOf(HasSubstr("postgres.conninfo: not a libpq"), Not(HasSubstr("hunter2"))));
}

TEST(Fields, EveryNameIsUniqueAndInASection) {
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    EXPECT_EQ(find_field(field.name), &field) << field.name;
    const auto dot = field.name.find('.');
    ASSERT_NE(dot, std::string_view::npos);
    EXPECT_NE(std::ranges::find(sections(), field.name.substr(0, dot), &Section::name),
              sections().end());
    EXPECT_TRUE(field.text.ends_with('.')) << field.name;
  }
}

TEST(Fields, EveryDefaultIsWithinItsRange) {
  for (const Field& field : fields()) {
    if (std::holds_alternative<SecretKind>(field.kind)) continue;
    Settings settings;
    const auto mistake = set_from_json(field, value_as_json(field, settings), settings);
    EXPECT_FALSE(mistake.has_value()) << field.name << ": " << mistake.value_or("");
  }
}

TEST(FieldValues, BytesHaveUnits) {
  EXPECT_EQ(parse_bytes("500"), 500);
  EXPECT_EQ(parse_bytes("2GiB"), std::int64_t{2} << 30);
  for (const char* text : {"", "KiB", "1kB", "-1", "1 KiB", "9999999999999GiB"}) {
    EXPECT_FALSE(parse_bytes(text).has_value()) << text;
  }
  EXPECT_EQ(format_bytes(1536), "1536");
  EXPECT_EQ(format_bytes(std::int64_t{64} * 1024), "64KiB");
}

TEST(Conninfo, ThePasswordIsPutInAndQuoted) {
  EXPECT_EQ(conninfo_with_password({.conninfo = "host=h", .password = ""}), "host=h");
  EXPECT_EQ(conninfo_with_password({.conninfo = "", .password = "x"}), "");
  EXPECT_EQ(conninfo_with_password({.conninfo = "host=h", .password = R"(a'b\c d)"}),
            R"(host='h' password='a\'b\\c d')");
  EXPECT_EQ(conninfo_with_password({.conninfo = "postgresql://u@h:1/db", .password = "x"}),
            "user='u' dbname='db' host='h' port='1' password='x'");
}

}  // namespace settings_test
}  // namespace fcap::updater
