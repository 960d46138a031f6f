#pragma once

#include <string>

#include <librdkafka/rdkafka.h>

#include <fcap/status.h>

#include "kafka/connection_advice.h"

namespace fcap::kafka {

/// The last error that librdkafka reported of its connections, and what to change where a setting
/// does not fit the broker's. A person at a terminal cannot tell that from "timed out" alone.
///
/// Thread safety: none, but for what librdkafka's own threads report.
class LastError {
 public:
  LastError() = default;
  LastError(const LastError&) = delete;
  LastError& operator=(const LastError&) = delete;

  /// Has the client that is made of `conf` report here, and log nothing. Takes the client's opaque
  /// pointer; this must outlive the client.
  void listen(rd_kafka_conf_t& conf);

  /// For rd_kafka_conf_set_error_cb.
  void note(int code, const char* reason);
  void clear() noexcept;
  /// Empty: there was none.
  [[nodiscard]] const std::string& text() const noexcept { return last_; }
  [[nodiscard]] Fault fault() const noexcept { return fault_; }

  /// `what` failed with `code`, and why as far as it is known. kRefused: Kafka does not accept the
  /// account; otherwise kUnavailable.
  [[nodiscard]] Status failure(const std::string& what, rd_kafka_resp_err_t code) const;

 private:
  std::string last_;
  Fault fault_ = Fault::kOther;
  RefusedCertificate refused_certificate_;
};

}  // namespace fcap::kafka
