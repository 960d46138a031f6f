#include "kafka/conf.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "kafka/connection_advice.h"

namespace fcap::kafka {
namespace {

Status refused(const std::string& name, std::string_view why) {
  return Status::error(StatusCode::kInvalidArgument, fmt::format("\"{}\": {}", name, why));
}

Status set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value) {
  char text[512] = {};
  switch (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text, sizeof text)) {
    case RD_KAFKA_CONF_OK:
      return {};
    case RD_KAFKA_CONF_UNKNOWN:
      return refused(name, "librdkafka has no such property");
    default:
      break;
  }
  // librdkafka's text may quote the value.
  if (is_secret_property(name)) return refused(name, "librdkafka does not accept this value");
  std::string_view why = text;
  while (why.ends_with('\n')) why.remove_suffix(1);
  return refused(name, why);
}

Status set_all(rd_kafka_conf_t* conf, const Properties& properties) {
  for (const auto& [name, value] : properties) {
    if (Status status = set(conf, name, value); !status.ok()) return status;
  }
  return {};
}

// As librdkafka writes it, also where it was set by another of the property's names.
std::string value_of(const rd_kafka_conf_t* conf, const std::string& name) {
  std::size_t size = 0;
  if (rd_kafka_conf_get(conf, name.c_str(), nullptr, &size) != RD_KAFKA_CONF_OK) return {};
  std::string value(size, '\0');
  rd_kafka_conf_get(conf, name.c_str(), value.data(), &size);
  return value;
}

// Sets all properties. Refuses one that changes a fixed one, as an alias of its name would.
Status set_around(rd_kafka_conf_t* conf, const Properties& properties, const Properties& fixed) {
  Properties before;
  for (const auto& [name, value] : fixed) before[name] = value_of(conf, name);
  for (const auto& [name, value] : properties) {
    if (Status status = set(conf, name, value); !status.ok()) return status;
    for (const auto& [kept, kept_value] : before) {
      if (value_of(conf, kept) == kept_value) continue;
      return refused(name, fmt::format("{} is always {} here; remove it", kept, fixed.at(kept)));
    }
  }
  return {};
}

}  // namespace

bool is_secret_property(std::string_view name) noexcept {
  return name.ends_with("password") || name.ends_with("secret") || name == "ssl.key.pem" ||
         name == "sasl.oauthbearer.config";
}

Status check_property(const std::string& name, const std::string& value) {
  const Ptr<rd_kafka_conf_t> scratch(rd_kafka_conf_new());
  return set(scratch.get(), name, value);
}

Result<Ptr<rd_kafka_conf_t>> make_conf(const ConnectionOptions& connection,
                                       const Properties& defaults, const Properties& fixed) {
  Properties reach = {{"bootstrap.servers", connection.brokers},
                      {"client.id", connection.client_id}};
  if (!connection.sasl_password.empty()) reach["sasl.password"] = connection.sasl_password;
  Ptr<rd_kafka_conf_t> conf(rd_kafka_conf_new());
  for (const Properties* properties : {&defaults, &std::as_const(reach), &fixed}) {
    if (Status status = set_all(conf.get(), *properties); !status.ok()) return status;
  }
  Status status = set_around(conf.get(), connection.properties, fixed);
  if (!status.ok()) {
    return Status::error(status.code(), "Kafka property " + status.text());
  }
  explain_refused_certificates(*conf);
  return conf;
}

void silence(rd_kafka_conf_t& conf) noexcept {
  rd_kafka_conf_set_log_cb(&conf, [](const rd_kafka_t*, int, const char*, const char*) {});
}

}  // namespace fcap::kafka
