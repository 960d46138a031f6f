#include "kafka/conf.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcap::kafka {
namespace conf_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Properties fixed() {
  return {{"acks", "all"}, {"enable.auto.commit", "false"}};
}

std::string mistake_of(const Properties& properties) {
  const auto made = make_conf({.properties = properties}, {}, fixed());
  if (made.ok()) return "none";
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  return made.status().text();
}

std::string value_in(const rd_kafka_conf_t* conf, const char* name) {
  char value[256] = {};
  std::size_t size = sizeof value;
  return rd_kafka_conf_get(conf, name, value, &size) == RD_KAFKA_CONF_OK ? value : "none";
}

TEST(KafkaConf, PropertiesWinOverDefaultsAndTheConnection) {
  const auto made = make_conf({.brokers = "a:1,b:2",
                               .client_id = "fcap-test",
                               .sasl_password = "hunter2",
                               .properties = {{"fetch.min.bytes", "10"}, {"client.id", "mine"}}},
                              {{"fetch.min.bytes", "5"}, {"linger.ms", "7"}}, fixed());
  ASSERT_TRUE(made.ok()) << made.status().text();
  const rd_kafka_conf_t* conf = made.value().get();
  EXPECT_EQ(value_in(conf, "bootstrap.servers"), "a:1,b:2");
  EXPECT_EQ(value_in(conf, "fetch.min.bytes"), "10");
  EXPECT_EQ(value_in(conf, "client.id"), "mine");
  EXPECT_EQ(value_in(conf, "linger.ms"), "7");
  EXPECT_EQ(value_in(conf, "sasl.password"), "hunter2");
  EXPECT_EQ(value_in(conf, "enable.auto.commit"), "false");
}

TEST(KafkaConf, WhatIsFixedStaysUnderAnyOfItsNames) {
  EXPECT_THAT(mistake_of({{"acks", "0"}}), HasSubstr("\"acks\": acks is always all"));
  EXPECT_THAT(mistake_of({{"request.required.acks", "0"}}),
              HasSubstr("\"request.required.acks\": acks is always all"));
  EXPECT_THAT(mistake_of({{"enable.auto.commit", "true"}}), HasSubstr("\"enable.auto.commit\""));
  EXPECT_EQ(mistake_of({{"acks", "-1"}, {"enable.auto.commit", "false"}}), "none");
}

TEST(KafkaConf, MistakesNameThePropertyAndHoldNoSecret) {
  EXPECT_THAT(mistake_of({{"client.idd", "x"}}),
              HasSubstr("Kafka property \"client.idd\": librdkafka has no such property"));
  EXPECT_THAT(mistake_of({{"debug", "nonsense"}}),
              AllOf(HasSubstr("\"debug\": "), HasSubstr("nonsense")));
  EXPECT_THAT(check_property("fetch.min.bytes", "-1").text(),
              AllOf(HasSubstr("outside allowed range"), Not(HasSubstr("\n"))));
  EXPECT_THAT(check_property("no.such.password", "hunter2").text(),
              AllOf(HasSubstr("no.such.password"), Not(HasSubstr("hunter2"))));
  EXPECT_THAT(check_property("sasl.jaas.config", "password=hunter2").text(),
              AllOf(HasSubstr("sasl.jaas.config"), Not(HasSubstr("hunter2"))));
  EXPECT_TRUE(check_property("sasl.password", "hunter2").ok());
}

TEST(KafkaConf, SecretsAreKnownByName) {
  for (const char* name : {"sasl.password", "ssl.key.password", "ssl.keystore.password",
                           "sasl.oauthbearer.client.secret", "ssl.key.pem"}) {
    EXPECT_TRUE(is_secret_property(name)) << name;
  }
  for (const char* name : {"sasl.username", "ssl.key.location", "client.id"}) {
    EXPECT_FALSE(is_secret_property(name)) << name;
  }
}

}  // namespace conf_test
}  // namespace fcap::kafka
