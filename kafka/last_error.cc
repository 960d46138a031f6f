#include "kafka/last_error.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fcap::kafka {
namespace {

// The first librdkafka whose SCRAM Kafka 4 accepts (librdkafka's pull request 4895). To earlier
// ones a broker says what it says of a wrong password.
constexpr int kScramWithKafka4 = 0x02060100;

std::string what_to_change(std::string_view reason) {
  std::string text = "; correct sasl.username, sasl.mechanism or the password";
  if (rd_kafka_version() < kScramWithKafka4 && reason.find("SCRAM") != std::string_view::npos) {
    text += fmt::format(", or use librdkafka 2.6.1: {} cannot use SCRAM with Kafka 4",
                        rd_kafka_version_str());
  }
  return text;
}

}  // namespace

void LastError::note(int code, const char* reason) {
  // "All brokers are down" comes last and says least.
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && !last_.empty()) return;
  last_ = reason;
  account_refused_ = code == RD_KAFKA_RESP_ERR__AUTHENTICATION;
  if (account_refused_) last_ += what_to_change(reason);
}

void LastError::clear() noexcept {
  last_.clear();
  account_refused_ = false;
}

Status LastError::failure(const std::string& what, rd_kafka_resp_err_t code) const {
  std::string text = fmt::format("{}: {}", what, rd_kafka_err2str(code));
  if (!last_.empty()) text += ": " + last_;
  return Status::error(account_refused_ ? StatusCode::kRefused : StatusCode::kUnavailable,
                       std::move(text), true);
}

}  // namespace fcap::kafka
