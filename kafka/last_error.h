#pragma once

#include <string>

#include <librdkafka/rdkafka.h>

#include <fcap/status.h>

namespace fcap::kafka {

/// The last error that librdkafka reported of its connections, and for an account that Kafka
/// refuses what to change. A person at a terminal cannot tell that from "timed out" alone.
class LastError {
 public:
  /// For rd_kafka_conf_set_error_cb.
  void note(int code, const char* reason);
  void clear() noexcept;
  /// Empty: there was none.
  [[nodiscard]] const std::string& text() const noexcept { return last_; }

  /// `what` failed with `code`, and why as far as it is known. kRefused: Kafka does not accept the
  /// account; otherwise kUnavailable.
  [[nodiscard]] Status failure(const std::string& what, rd_kafka_resp_err_t code) const;

 private:
  std::string last_;
  bool account_refused_ = false;
};

}  // namespace fcap::kafka
