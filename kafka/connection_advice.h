#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include <librdkafka/rdkafka.h>

namespace fcap::kafka {

/// librdkafka's errors say only that a broker's certificate is refused. After this its log says
/// why, for RefusedCertificate. Looks at the properties, so they must have been set.
void explain_refused_certificates(rd_kafka_conf_t& conf);

/// Why a broker's certificate was refused last.
///
/// Thread safety: all functions from any thread. librdkafka logs from threads of its own.
class RefusedCertificate {
 public:
  /// Whether this line of librdkafka's log says why a certificate is refused; it is then kept.
  bool take_log(std::string_view facility, std::string_view text);
  /// Empty: nothing is known.
  [[nodiscard]] std::string why() const;

 private:
  mutable std::mutex mutex_;
  std::string why_;
};

/// Which settings of a connection do not fit the broker's.
enum class Fault : std::uint8_t {
  kOther,       ///< none of these, or it is not known
  kAccount,     ///< Kafka does not accept the account
  kEncryption,  ///< one side speaks TLS and the other does not, or one does not trust the other
};

struct Advice {
  Fault fault = Fault::kOther;
  std::string text;  ///< what to change; empty: nothing is known
};

/// What an error of librdkafka means for whoever has configured the connection. `reason` is its
/// text, and `refused` is why a certificate was refused last.
[[nodiscard]] Advice advice_on(int code, std::string_view reason, const std::string& refused);

}  // namespace fcap::kafka
