#pragma once

#include <string>

#include <librdkafka/rdkafka.h>

#include <fcap/status.h>

namespace fcap::kafka {

/// What librdkafka said last of its connections: for people who wait at a terminal, and whom "not
/// answered in time" does not tell what to put right.
class Trouble {
 public:
  /// For rd_kafka_conf_set_error_cb.
  void note(int code, const char* reason);

  /// `what` failed with `code`, and why as far as it is known. Names the options to look at.
  [[nodiscard]] Status failure(const std::string& what, rd_kafka_resp_err_t code) const;

 private:
  std::string last_;
};

}  // namespace fcap::kafka
