#pragma once

#include <string>

#include <librdkafka/rdkafka.h>

#include <fcap/status.h>

namespace fcap::kafka {

/// The last error that librdkafka reported of its connections. A person at a terminal cannot tell
/// from "timed out" alone what to change.
class LastError {
 public:
  /// For rd_kafka_conf_set_error_cb.
  void note(int code, const char* reason);
  void clear() noexcept { last_.clear(); }
  /// Empty: there was none.
  [[nodiscard]] const std::string& text() const noexcept { return last_; }

  /// `what` failed with `code`, and why as far as it is known. kUnavailable.
  [[nodiscard]] Status failure(const std::string& what, rd_kafka_resp_err_t code) const;

 private:
  std::string last_;
};

}  // namespace fcap::kafka
