// fcap erase.
#include <iostream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/kafka_connection.h"
#include "config/time_text.h"
#include "kafka/publisher.h"
#include "ledger/ids.h"

namespace fcap::cli {
namespace {

using nlohmann::ordered_json;

/// What is to be forgotten.
struct Erasure {
  std::string user;
  Instant until;
};

Status wrong(std::string text) {
  return Status::error(StatusCode::kInvalidArgument, std::move(text));
}

Status check_user(const std::string& user, const AccessSettings& access) {
  if (user.empty()) return wrong("USER: empty; nothing is recorded of nobody");
  if (user.size() > ledger::kIdBytesMax) return wrong("USER: has more than 256 bytes");
  for (const std::string& null_id : access.null_user_ids) {
    if (user == null_id) {
      return wrong(
          fmt::format("USER: \"{}\" stands for \"unknown\"; nothing is recorded of it", null_id));
    }
  }
  return {};
}

Result<Erasure> plan(const Settings& settings, Instant now) {
  Erasure erasure{settings.erase.user, now};
  if (Status status = check_user(erasure.user, settings.access); !status.ok()) return status;
  if (settings.at.empty()) return erasure;
  const Result<Instant> at = parse_at(settings.at, "--at");
  if (!at.ok()) return at.status();
  erasure.until = at.value();
  if (erasure.until > now) {
    return wrong("--at: lies in the future; what has not happened cannot be erased");
  }
  const auto retention = parse_duration(settings.access.retention, "--retention");
  if (!retention.ok()) return retention.status();
  // The updater would pass it over, and take a time as small as 1973's for seconds.
  if (erasure.until <= now - retention.value()) {
    return wrong(fmt::format("--at: nothing from before {} is kept (--retention {})",
                             config::format_instant(now - retention.value()),
                             settings.access.retention));
  }
  return erasure;
}

Result<std::string> message_of(const Erasure& erasure) {
  const ordered_json json = {
      {"user_id", erasure.user}, {"type", "erasure"}, {"timestamp", to_ms(erasure.until)}};
  try {
    return json.dump();
  } catch (const ordered_json::type_error&) {
    return wrong("USER: not UTF-8; no event can carry such an id");
  }
}

/// Yes by flag or by hand. None: there is nobody to ask.
std::optional<bool> confirmed(const Settings& settings, const Erasure& erasure, Streams streams) {
  if (settings.erase.yes) return true;
  if (&streams.in != &std::cin || ::isatty(STDIN_FILENO) == 0) return std::nullopt;
  streams.err << fmt::format(
      "Forget everything of user \"{}\" up to {}, for ever? Only \"yes\" does: ", erasure.user,
      config::format_instant(erasure.until));
  streams.err.flush();
  std::string answer;
  std::getline(streams.in, answer);
  return answer == "yes";
}

/// The audit line: whose events, until when, asked for when, and the message that does it.
void report(const Settings& settings, const Erasure& erasure, const kafka::Position& position,
            Instant now, Streams streams) {
  if (settings.json) {
    const ordered_json json = {{"user", erasure.user},
                               {"erased_until", to_ms(erasure.until)},
                               {"published_at", to_ms(now)},
                               {"topic", settings.erase.kafka.topic},
                               {"partition", position.partition},
                               {"offset", position.offset}};
    streams.out << json.dump() << "\n";
    return;
  }
  streams.out << fmt::format(
      "{} erasure published: user \"{}\", everything up to {}, topic {}, partition {}, offset {}\n",
      config::format_instant(now), erasure.user, config::format_instant(erasure.until),
      settings.erase.kafka.topic, position.partition, position.offset);
}

Result<kafka::Position> publish(const Settings& settings, const kafka::Connection& connection,
                                const Erasure& erasure, const std::string& message) {
  const auto timeout = parse_duration(settings.access.timeout, "--timeout");
  if (!timeout.ok()) return timeout.status();
  auto publisher = kafka::Publisher::open(connection);
  if (!publisher.ok()) return publisher.status();
  return publisher.value()->publish(settings.erase.kafka.topic, erasure.user, message,
                                    timeout.value());
}

}  // namespace

int run_erase(const Settings& settings, Streams streams) {
  const Result<Erasure> erasure = plan(settings, system_now());
  if (!erasure.ok()) return fail(streams, erasure.status());
  const Result<std::string> message = message_of(erasure.value());
  if (!message.ok()) return fail(streams, message.status());
  const auto connection = kafka_connection(settings.erase.kafka, "fcap-erase");
  if (!connection.ok()) return fail(streams, connection.status());
  const std::optional<bool> yes = confirmed(settings, erasure.value(), streams);
  if (!yes) {
    return fail(streams, wrong("erase: needs --yes, since nobody can be asked here: standard input "
                               "is no terminal"));
  }
  if (!*yes) {
    streams.err << "fcap: nothing was erased\n";
    return kExitFailure;
  }
  const Result<kafka::Position> position =
      publish(settings, connection.value(), erasure.value(), message.value());
  if (!position.ok()) return fail(streams, position.status());
  report(settings, erasure.value(), position.value(), system_now(), streams);
  return kExitOk;
}

}  // namespace fcap::cli
