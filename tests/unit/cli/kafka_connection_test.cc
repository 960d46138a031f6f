#include "cli/kafka_connection.h"

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "command.h"

namespace fcap::cli_test {
namespace kafka_connection_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string mistake_of(const cli::TopicSettings& settings) {
  const auto connection = cli::kafka_connection(settings, "test");
  if (connection.ok()) return "none";
  EXPECT_EQ(connection.status().code(), StatusCode::kInvalidArgument);
  return connection.status().text();
}

std::string mistake_in_file(const std::string& content) {
  const File file(content);
  std::string mistake = mistake_of({.config_file = file.path()});
  EXPECT_THAT(mistake, AnyOf("none", HasSubstr("--kafka-config: " + file.path() + ": line ")));
  return mistake;
}

TEST(KafkaConnection, FilesHoldNamesAndValuesBlankLinesAndComments) {
  const File file(
      "# of the cluster in the cellar\r\n"
      "\n"
      "security.protocol=SASL_SSL\r\n"
      "  sasl.mechanism = PLAIN  \n"
      "sasl.username=fcap\n"
      "\t# sasl.username=somebody\n"
      "sasl.password=hunter2==#\n"
      "client.rack=\n"
      "client.id=of-the-file");
  const auto connection =
      cli::kafka_connection({.brokers = "a:1", .config_file = file.path()}, "fcap-test");
  ASSERT_TRUE(connection.ok()) << connection.status().text();
  EXPECT_EQ(connection.value().brokers, "a:1");
  EXPECT_EQ(connection.value().client_id, "fcap-test");
  EXPECT_THAT(
      connection.value().properties,
      UnorderedElementsAre(Pair("security.protocol", "SASL_SSL"), Pair("sasl.mechanism", "PLAIN"),
                           Pair("sasl.username", "fcap"), Pair("sasl.password", "hunter2==#"),
                           Pair("client.rack", ""), Pair("client.id", "of-the-file")));
}

TEST(KafkaConnection, TheCommandLineWinsOverTheFileAndItsLastOverItsFirst) {
  const File file("client.id=file\nclient.rack=file\n");
  const auto connection = cli::kafka_connection(
      {.config_file = file.path(), .properties = {"client.id=first", "client.id=last"}}, "test");
  ASSERT_TRUE(connection.ok()) << connection.status().text();
  EXPECT_THAT(connection.value().properties,
              UnorderedElementsAre(Pair("client.id", "last"), Pair("client.rack", "file")));
}

TEST(KafkaConnection, MistakesNameThePlaceAndTheProperty) {
  EXPECT_THAT(mistake_of({.properties = {"client.id=x", "client.idd=x"}}),
              HasSubstr("--kafka-property: \"client.idd\": librdkafka has no such property"));
  EXPECT_THAT(mistake_of({.properties = {"enable.auto.commit=maybe"}}),
              HasSubstr("--kafka-property: \"enable.auto.commit\": "));
  for (const char* flag : {"client.id", "=x", ""}) {
    EXPECT_THAT(mistake_of({.properties = {flag}}), HasSubstr("write NAME=VALUE")) << flag;
  }
  EXPECT_THAT(mistake_in_file("client.id=x\n\nclient.idd=x\n"),
              HasSubstr("line 3: \"client.idd\": librdkafka has no such property"));
  EXPECT_THAT(mistake_in_file("debug=everything\n"), HasSubstr("line 1: \"debug\": "));
}

TEST(KafkaConnection, BrokersHaveTheirOwnOption) {
  EXPECT_THAT(mistake_of({.properties = {"bootstrap.servers=a:1"}}), HasSubstr("use --brokers"));
  EXPECT_THAT(mistake_in_file("metadata.broker.list=a:1"), HasSubstr("use --brokers"));
}

TEST(KafkaConnection, SecretsComeFromTheFileOnlyAndAreNotRepeated) {
  EXPECT_EQ(mistake_in_file("sasl.password=hunter2\n"), "none");
  EXPECT_THAT(mistake_of({.properties = {"sasl.password=hunter2"}}),
              AllOf(HasSubstr("\"sasl.password\""), HasSubstr("--kafka-config"),
                    Not(HasSubstr("hunter2"))));
  EXPECT_THAT(mistake_in_file("sasl.password hunter2\n"),
              AllOf(HasSubstr("line 1: write name=value"), Not(HasSubstr("hunter2"))));
}

TEST(KafkaConnection, AFileThatCannotBeReadIsNamed) {
  for (const std::string& path :
       {std::string("/does/not/exist"), std::filesystem::temp_directory_path().string()}) {
    const auto connection = cli::kafka_connection({.config_file = path}, "test");
    ASSERT_FALSE(connection.ok());
    EXPECT_EQ(connection.status().code(), StatusCode::kNotFound);
    EXPECT_EQ(connection.status().text(), "--kafka-config: " + path + " cannot be read");
  }
}

TEST(KafkaOptions, EveryCommandThatReachesKafkaRefusesAWrongProperty) {
  const File rules(R"({"version": 1, "rules": [], "campaigns": []})");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"erase", "u1", "--yes"},
                                                  {"audit"},
                                                  {"simulate", "--kafka", "a:1"}}) {
    std::vector<std::string> arguments = command;
    // One value each: what follows is not a second property.
    arguments.insert(arguments.begin() + 1, {"--rules", rules.path(), "--kafka-property",
                                             "client.id=x", "--kafka-property", "no.such=1"});
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << command.front();
    EXPECT_THAT(ran.err, HasSubstr("--kafka-property: \"no.such\": ")) << command.front();
  }
}

TEST(KafkaOptions, WhatTheCommandRestsOnCannotBeChanged) {
  const Ran ran = run({"erase", "--kafka-property", "acks=0", "u1", "--yes"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("\"acks\""));
}

TEST(KafkaOptions, TheEnvironmentNamesTheFile) {
  const File file("no.such=1\n");
  ::setenv("FCAP_KAFKA_CONFIG", file.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  const Ran ran = run({"erase", "u1", "--yes"});
  ::unsetenv("FCAP_KAFKA_CONFIG");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr(file.path() + ": line 1: \"no.such\""));
}

TEST(KafkaOptions, PropertiesDoNotMatterWhereNoTopicIsRead) {
  const File rules(R"({"version": 1, "rules": [], "campaigns": []})");
  const File log("user_id,campaign_id,timestamp\nu1,c1,1700000000\n");
  const Ran ran = run({"simulate", "--log", log.path(), "--rules", rules.path(), "--kafka-config",
                       "/does/not/exist"});
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST(KafkaOptions, WhatKafkaRefusesNamesTheOptionsToLookAt) {
  const auto unreachable = Status::error(StatusCode::kUnavailable, "topic t: timed out", true);
  const Status shown = cli::with_kafka_options(unreachable, "--kafka");
  EXPECT_EQ(shown.text(), "topic t: timed out (see --kafka, --topic and --kafka-config)");
  EXPECT_TRUE(shown.retryable());
  const auto mistake =
      Status::error(StatusCode::kInvalidArgument, "--from-offsets: behind the end");
  EXPECT_EQ(cli::with_kafka_options(mistake).text(), mistake.text());
  EXPECT_TRUE(cli::with_kafka_options({}).ok());
}

}  // namespace kafka_connection_test
}  // namespace fcap::cli_test
