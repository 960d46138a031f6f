#include "kafka/connection_advice.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcap::kafka {
namespace connection_advice_test {

using ::testing::HasSubstr;

constexpr const char* kNotVerified =
    "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker "
    "certificate could not be verified";

TEST(ConnectionAdvice, OfACertificateSaysWhyItIsRefusedIfThatIsKnown) {
  const Advice known = advice_on(RD_KAFKA_RESP_ERR__SSL, kNotVerified, "it has expired");
  EXPECT_EQ(known.fault, Fault::kEncryption);
  EXPECT_EQ(known.text, "it has expired");
  EXPECT_THAT(advice_on(RD_KAFKA_RESP_ERR__SSL, kNotVerified, "").text,
              HasSubstr("ssl.ca.location"));
}

TEST(ConnectionAdvice, OfATransportNamesTheProtocol) {
  for (const char* const reason :
       {"SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?",
        "SSL handshake failed: error:0A000126:SSL routines::unexpected eof while reading (after "
        "46ms in state SSL_HANDSHAKE)",
        "Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol "
        "configuration (connecting to a SSL listener?)",
        "Receive failed: Invalid response size 352518912 (0..100000000): increase "
        "receive.message.max.bytes"}) {
    const Advice advice = advice_on(RD_KAFKA_RESP_ERR__TRANSPORT, reason, "of another broker");
    EXPECT_EQ(advice.fault, Fault::kEncryption) << reason;
    EXPECT_THAT(advice.text, HasSubstr("security.protocol")) << reason;
  }
}

TEST(ConnectionAdvice, OfARefusedClientNamesItsCertificate) {
  const Advice advice = advice_on(RD_KAFKA_RESP_ERR__TRANSPORT,
                                  "Receive failed: error:0A00045C:SSL routines::tlsv13 alert "
                                  "certificate required",
                                  "");
  EXPECT_THAT(advice.text, HasSubstr("ssl.certificate.location"));
}

TEST(ConnectionAdvice, OfABrokerThatIsAwayThereIsNone) {
  for (const char* const reason :
       {"Connect to ipv4#127.0.0.1:1 failed: Connection refused", "1/1 brokers are down",
        "Receive failed: error:0A000126:SSL routines::unexpected eof while reading (after 5000ms "
        "in state UP)",
        "Receive failed: Invalid response size 200000000 (0..100000000): increase "
        "receive.message.max.bytes"}) {
    const Advice advice = advice_on(RD_KAFKA_RESP_ERR__TRANSPORT, reason, "it has expired");
    EXPECT_EQ(advice.fault, Fault::kOther) << reason;
    EXPECT_EQ(advice.text, "") << reason;
  }
}

TEST(RefusedCertificate, IsReadFromTheLineOfItsFacilityOnly) {
  const std::string line =
      "[thrd:ssl://h:1/1]: ssl://h:1/1: Certificate (subject=/CN=b, issuer=/CN=a) verification "
      "callback failed: it has expired";
  RefusedCertificate refused;
  EXPECT_FALSE(refused.take_log("FAIL", line));
  EXPECT_FALSE(refused.take_log("SSLCERTVRFY", "Failed to get current certificate to verify"));
  EXPECT_EQ(refused.why(), "");
  EXPECT_TRUE(refused.take_log("SSLCERTVRFY", line));
  EXPECT_EQ(refused.why(), "it has expired");
}

}  // namespace connection_advice_test
}  // namespace fcap::kafka
