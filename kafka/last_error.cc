#include "kafka/last_error.h"

#include <utility>

#include <fmt/format.h>

namespace fcap::kafka {

void LastError::note(int code, const char* reason) {
  // "All brokers are down" comes last and says least.
  if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || last_.empty()) last_ = reason;
}

Status LastError::failure(const std::string& what, rd_kafka_resp_err_t code) const {
  std::string text = fmt::format("{}: {}", what, rd_kafka_err2str(code));
  if (!last_.empty()) text += ": " + last_;
  return Status::error(StatusCode::kUnavailable, std::move(text), true);
}

}  // namespace fcap::kafka
