#include "kafka/last_error.h"

#include <utility>

#include <fmt/format.h>

namespace fcap::kafka {

void LastError::listen(rd_kafka_conf_t& conf) {
  rd_kafka_conf_set_opaque(&conf, this);
  rd_kafka_conf_set_error_cb(&conf, [](rd_kafka_t*, int code, const char* reason, void* self) {
    static_cast<LastError*>(self)->note(code, reason);
  });
  rd_kafka_conf_set_log_cb(
      &conf, [](const rd_kafka_t* client, int, const char* facility, const char* text) {
        auto* const self = static_cast<LastError*>(rd_kafka_opaque(client));
        (void)self->refused_certificate_.take_log(facility, text);
      });
}

void LastError::note(int code, const char* reason) {
  // "All brokers are down" comes last and says least.
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && !last_.empty()) return;
  const Advice advice = advice_on(code, reason, refused_certificate_.why());
  last_ = reason;
  if (!advice.text.empty()) last_ += "; " + advice.text;
  fault_ = advice.fault;
}

void LastError::clear() noexcept {
  last_.clear();
  fault_ = Fault::kOther;
}

Status LastError::failure(const std::string& what, rd_kafka_resp_err_t code) const {
  std::string text = fmt::format("{}: {}", what, rd_kafka_err2str(code));
  if (!last_.empty()) text += ": " + last_;
  return Status::error(fault_ == Fault::kAccount ? StatusCode::kRefused : StatusCode::kUnavailable,
                       std::move(text), true);
}

}  // namespace fcap::kafka
