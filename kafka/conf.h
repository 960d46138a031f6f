#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <fcap/status.h>

#include "kafka/handles.h"

namespace fcap::kafka {

/// librdkafka's, by name.
using Properties = std::map<std::string, std::string>;

/// How to reach a Kafka cluster; the same for reading and for dead letters.
struct ConnectionOptions {
  std::string brokers = "127.0.0.1:9092";  ///< comma-separated
  std::string client_id = "fcap";
  std::string sasl_password = {};  ///< empty: none is set
  /// Given to librdkafka as they are, after everything else.
  Properties properties = {};
};

/// Whether a property of this name holds a secret.
[[nodiscard]] bool is_secret_property(std::string_view name) noexcept;

/// Whether librdkafka takes this property with this value. The text names the property and holds no
/// secret.
[[nodiscard]] Status check_property(const std::string& name, const std::string& value);

/// librdkafka's configuration: `defaults`, then the connection, then `fixed`, which the guarantees
/// depend on, then the connection's pass-through properties: one that would change what is fixed,
/// by whichever of its names, is refused.
/// A producer's properties that a consumer does not know (and the reverse) only warn.
Result<Ptr<rd_kafka_conf_t>> make_conf(const ConnectionOptions& connection,
                                       const Properties& defaults, const Properties& fixed);

/// Has librdkafka log nothing, for clients whose calls say what goes wrong.
void silence(rd_kafka_conf_t& conf) noexcept;

}  // namespace fcap::kafka
