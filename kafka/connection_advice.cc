#include "kafka/connection_advice.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include <fmt/format.h>

namespace fcap::kafka {
namespace {

// OpenSSL's numbers for what is wrong with a certificate (X509_V_ERR_…), which librdkafka passes
// on. They never change.
constexpr int kNoIssuer = 2;
constexpr int kNotYetValid = 9;
constexpr int kExpired = 10;
constexpr int kSelfSigned = 18;
constexpr int kSelfSignedAuthority = 19;
constexpr int kNoLocalIssuer = 20;
constexpr int kSignatureNotVerified = 21;
constexpr int kOtherName = 62;
constexpr int kOtherAddress = 64;

// How librdkafka introduces the text of the function below, in a log line of this facility.
constexpr std::string_view kFacility = "SSLCERTVRFY";
constexpr std::string_view kIntroduction = "verification callback failed: ";

// The first librdkafka whose SCRAM Kafka 4 accepts (librdkafka's pull request 4895). To earlier
// ones a broker says what it says of a wrong password.
constexpr int kScramWithKafka4 = 0x02060100;

std::string_view without_port(std::string_view broker) {
  return broker.substr(0, broker.rfind(':'));
}

std::string why_refused(int error, int depth, std::string_view broker) {
  const std::string_view whose = depth == 0 ? "the broker's certificate" : "its authority";
  switch (error) {
    case kOtherName:
    case kOtherAddress:
      return fmt::format(
          "{} is not for \"{}\": use a name that it is for (kafka.brokers here, "
          "advertised.listeners at the broker), or give the broker one that is for this name",
          whose, without_port(broker));
    case kExpired:
      return fmt::format("{} has expired: renew it (the broker's ssl.keystore.location)", whose);
    case kNotYetValid:
      return fmt::format("{} is not valid yet: compare the clocks of the broker and this machine",
                         whose);
    case kNoIssuer:
    case kSelfSigned:
    case kSelfSignedAuthority:
    case kNoLocalIssuer:
    case kSignatureNotVerified:
      return fmt::format(
          "{} comes from an authority that is not trusted here: correct ssl.ca.location", whose);
    default:
      return fmt::format("{} is refused with OpenSSL's error {}: correct ssl.ca.location", whose,
                         error);
  }
}

// For rd_kafka_conf_set_ssl_cert_verify_cb. Refuses what OpenSSL refuses, and nothing else.
int verify(rd_kafka_t* /*client*/, const char* broker, std::int32_t /*broker_id*/, int* error,
           int depth, const char* /*certificate*/, std::size_t /*size*/, char* text,
           std::size_t text_size, void* /*opaque*/) {
  if (*error == 0) return 1;
  const std::string why = why_refused(*error, depth, broker != nullptr ? broker : "");
  const std::size_t length = std::min(why.size(), text_size - 1);
  *std::copy_n(why.data(), length, text) = '\0';
  return 0;
}

std::string value_of(const rd_kafka_conf_t& conf, const char* name) {
  std::array<char, 64> value{};
  std::size_t size = value.size();
  const auto read = rd_kafka_conf_get(&conf, name, value.data(), &size);
  return read == RD_KAFKA_CONF_OK ? value.data() : "";
}

std::string advice_on_account(std::string_view reason) {
  std::string text =
      "correct sasl.username, sasl.mechanism or the password (kafka.sasl_password_file or "
      "sasl.password)";
  if (rd_kafka_version() < kScramWithKafka4 && reason.find("SCRAM") != std::string_view::npos) {
    text += fmt::format(", or use librdkafka 2.6.1: {} cannot use SCRAM with Kafka 4",
                        rd_kafka_version_str());
  }
  return text;
}

// A client that expects Kafka's protocol takes the first bytes of an alert of TLS, 0x15030…, for
// the size of a response.
bool is_size_made_of_alert(std::string_view reason) {
  return reason.find("Invalid response size 35251") != std::string_view::npos;
}

}  // namespace

void explain_refused_certificates(rd_kafka_conf_t& conf) {
  const bool encrypted = value_of(conf, "security.protocol").ends_with("ssl");
  if (!encrypted || value_of(conf, "enable.ssl.certificate.verification") != "true") return;
  // Where librdkafka has no TLS this is refused, and changes nothing.
  (void)rd_kafka_conf_set_ssl_cert_verify_cb(&conf, verify);
}

bool RefusedCertificate::take_log(std::string_view facility, std::string_view text) {
  if (facility != kFacility) return false;
  const auto introduction = text.find(kIntroduction);
  if (introduction == std::string_view::npos) return false;
  const std::lock_guard lock(mutex_);
  why_ = text.substr(introduction + kIntroduction.size());
  return true;
}

std::string RefusedCertificate::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

Advice advice_on(int code, std::string_view reason, const std::string& refused) {
  const auto has_any = [reason](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [reason](std::string_view each) {
      return reason.find(each) != std::string_view::npos;
    });
  };
  if (code == RD_KAFKA_RESP_ERR__AUTHENTICATION) {
    return {Fault::kAccount, advice_on_account(reason)};
  }
  if (has_any({"certificate verify failed", "verify broker certificate"})) {
    constexpr const char* kAnyReason =
        "the broker's certificate has expired, is not for the broker's name, or comes from an "
        "authority that is not trusted here (ssl.ca.location)";
    return {Fault::kEncryption, refused.empty() ? kAnyReason : refused};
  }
  // OpenSSL 3 has words of its own for a peer that closes within the handshake, as one does that
  // does not understand its first message.
  const bool is_cut_off =
      has_any({"unexpected eof while reading"}) && has_any({"in state SSL_HANDSHAKE"});
  if (is_cut_off || has_any({"PLAINTEXT broker listener", "wrong version number"})) {
    return {Fault::kEncryption,
            "the broker may not speak TLS on this port: correct security.protocol, or the port in "
            "kafka.brokers"};
  }
  if (has_any({"SSL listener"}) || is_size_made_of_alert(reason)) {
    return {Fault::kEncryption,
            "the broker may expect TLS on this port: set security.protocol to ssl or sasl_ssl, or "
            "correct the port in kafka.brokers"};
  }
  if (has_any({"certificate required", "alert bad certificate", "alert certificate",
               "alert unknown ca", "client SSL authentication might be required"})) {
    return {Fault::kEncryption,
            "the broker requires a client certificate, or does not accept this one: correct "
            "ssl.certificate.location and ssl.key.location"};
  }
  return {};
}

}  // namespace fcap::kafka
