#include "cli/kafka_connection.h"

#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fcap::cli {
namespace {

using Property = std::pair<std::string, std::string>;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<Property> split(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view name = trimmed(text.substr(0, equals));
  if (name.empty()) return std::nullopt;
  return Property(name, trimmed(text.substr(equals + 1)));
}

Status wrong(std::string_view place, std::string_view why) {
  return Status::error(StatusCode::kInvalidArgument, fmt::format("{}: {}", place, why));
}

// `place` says where it was given. The status names the property, never its value where that is a
// secret.
Status add(const Property& property, std::string_view place, kafka::Properties& properties) {
  const auto& [name, value] = property;
  if (name == "bootstrap.servers" || name == "metadata.broker.list") {
    return wrong(place, fmt::format("\"{}\": use --brokers (simulate: --kafka)", name));
  }
  if (const Status status = kafka::check_property(name, value); !status.ok()) {
    return wrong(place, status.text());
  }
  properties[name] = value;
  return {};
}

Status add_file(const std::string& path, kafka::Properties& properties) {
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.starts_with('#')) continue;
    const std::string place = fmt::format("--kafka-config: {}: line {}", path, number);
    // The line is not quoted: it may hold a secret.
    const auto property = split(text);
    if (!property) return wrong(place, "write name=value");
    if (Status status = add(*property, place, properties); !status.ok()) return status;
  }
  // A directory opens, and fails when it is read.
  if (file.is_open() && !file.bad()) return {};
  return Status::error(StatusCode::kNotFound, "--kafka-config: " + path + " cannot be read");
}

Status add_flag(const std::string& flag, kafka::Properties& properties) {
  constexpr std::string_view kPlace = "--kafka-property";
  const auto property = split(flag);
  if (!property) return wrong(kPlace, fmt::format("\"{}\": write NAME=VALUE", flag));
  if (kafka::is_secret_property(property->first)) {
    return wrong(
        kPlace,
        fmt::format(
            "\"{}\": every user of the machine can read a command line; use --kafka-config FILE",
            property->first));
  }
  return add(*property, kPlace, properties);
}

}  // namespace

Result<kafka::ConnectionOptions> kafka_connection(const TopicSettings& settings,
                                                  std::string client_id) {
  kafka::ConnectionOptions connection{.brokers = settings.brokers,
                                      .client_id = std::move(client_id)};
  for (const auto& [name, value] : settings.of_updater) connection.properties[name] = value;
  if (!settings.config_file.empty()) {
    Status status = add_file(settings.config_file, connection.properties);
    if (!status.ok()) return status;
  }
  for (const std::string& flag : settings.properties) {
    if (Status status = add_flag(flag, connection.properties); !status.ok()) return status;
  }
  return connection;
}

Status with_kafka_options(const Status& status, std::string_view brokers_option) {
  const bool of_kafka = status.code() == StatusCode::kUnavailable ||
                        status.code() == StatusCode::kRefused ||
                        status.code() == StatusCode::kNotFound;
  if (!of_kafka) return status;
  return Status::error(
      status.code(),
      fmt::format("{} (see {}, --topic and --kafka-config)", status.text(), brokers_option),
      status.retryable());
}

}  // namespace fcap::cli
