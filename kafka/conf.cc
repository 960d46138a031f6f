#include "kafka/conf.h"

#include <utility>

#include <fmt/format.h>

namespace fcap::kafka {
namespace {

Status set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  char text[512] = {};
  if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text, sizeof text) == RD_KAFKA_CONF_OK) {
    return {};
  }
  return Status::error(StatusCode::kInvalidArgument,
                       fmt::format("kafka property {}: {}", name, text));
}

}  // namespace

Result<Ptr<rd_kafka_conf_t>> make_conf(const Connection& connection,
                                       const std::map<std::string, std::string>& defaults,
                                       const std::map<std::string, std::string>& fixed) {
  for (const auto& [name, value] : fixed) {
    const auto given = connection.properties.find(name);
    if (given != connection.properties.end() && given->second != value) {
      return Status::error(
          StatusCode::kInvalidArgument,
          fmt::format("kafka.properties: {} is always \"{}\" here; remove it", name, value));
    }
  }
  std::map<std::string, std::string> all = defaults;
  all["bootstrap.servers"] = connection.brokers;
  all["client.id"] = connection.client_id;
  if (!connection.sasl_password.empty()) all["sasl.password"] = connection.sasl_password;
  for (const auto& [name, value] : connection.properties) all[name] = value;
  for (const auto& [name, value] : fixed) all[name] = value;

  Ptr<rd_kafka_conf_t> conf(rd_kafka_conf_new());
  for (const auto& [name, value] : all) {
    if (Status status = set(conf.get(), name, value); !status.ok()) return status;
  }
  return conf;
}

}  // namespace fcap::kafka
