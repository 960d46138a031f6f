#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <fcap/redis_options.h>
#include <fcap/status.h>

#include "kafka/handles.h"

namespace fcap::kafka {

/// How to reach a Kafka cluster; the same for reading and for dead letters.
struct Connection {
  std::string brokers = "127.0.0.1:9092";  ///< comma-separated
  std::string client_id = "fcap";
  std::string sasl_password = {};  ///< empty: none is set
  /// Given to librdkafka as they are, after everything else.
  std::map<std::string, std::string> properties = {};
};

/// librdkafka's configuration: `defaults`, then the connection, then its pass-through properties,
/// then `fixed`, which the guarantees depend on: a pass-through property of that name is refused.
/// A producer's properties that a consumer does not know (and the reverse) only warn.
Result<Ptr<rd_kafka_conf_t>> make_conf(const Connection& connection,
                                       const std::map<std::string, std::string>& defaults,
                                       const std::map<std::string, std::string>& fixed);

}  // namespace fcap::kafka
