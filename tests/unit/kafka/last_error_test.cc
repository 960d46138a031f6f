#include "kafka/last_error.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcap::kafka {
namespace last_error_test {

using ::testing::HasSubstr;
using ::testing::Not;

Status failure_after(int code, const char* reason) {
  LastError last;
  last.note(code, reason);
  last.note(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down");
  return last.failure("topic impressions", RD_KAFKA_RESP_ERR__TRANSPORT);
}

TEST(LastError, OfAConnectionIsToldBesideWhatFailed) {
  const Status status = failure_after(RD_KAFKA_RESP_ERR__TRANSPORT, "connection refused");
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.text(), HasSubstr("topic impressions: Local: Broker transport failure"));
  EXPECT_THAT(status.text(), HasSubstr("connection refused"));
  EXPECT_THAT(status.text(), Not(HasSubstr("brokers are down")));
}

TEST(LastError, OfAnAccountNamesWhatToChange) {
  const Status status = failure_after(RD_KAFKA_RESP_ERR__AUTHENTICATION,
                                      "invalid credentials with SASL mechanism PLAIN");
  EXPECT_EQ(status.code(), StatusCode::kRefused);
  EXPECT_TRUE(status.retryable());
  EXPECT_THAT(status.text(), HasSubstr("PLAIN; correct sasl.username, sasl.mechanism or the"));
  EXPECT_THAT(status.text(), Not(HasSubstr("librdkafka")));
}

TEST(LastError, OfScramSaysThatAnOldLibrdkafkaMayBeTheReason) {
  const Status status = failure_after(RD_KAFKA_RESP_ERR__AUTHENTICATION,
                                      "invalid credentials with SASL mechanism SCRAM-SHA-256");
  const bool old = rd_kafka_version() < 0x02060100;
  EXPECT_EQ(status.text().find("cannot use SCRAM with Kafka 4") != std::string::npos, old)
      << status.text();
}

TEST(LastError, ThatHasPassedIsNotTold) {
  LastError last;
  last.note(RD_KAFKA_RESP_ERR__AUTHENTICATION, "invalid credentials");
  last.clear();
  const Status status = last.failure("topic impressions", RD_KAFKA_RESP_ERR__TIMED_OUT);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(status.text(), "topic impressions: Local: Timed out");
}

}  // namespace last_error_test
}  // namespace fcap::kafka
