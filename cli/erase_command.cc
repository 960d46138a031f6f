// fcap erase.
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/clock.h"
#include "base/outside_text.h"
#include "base/time_text.h"
#include "cli/check_question.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/kafka_connection.h"
#include "kafka/publisher.h"
#include "ledger/ids.h"

namespace fcap::cli {
namespace {

using nlohmann::ordered_json;

// What is to be forgotten.
struct ErasureOrder {
  std::string user;
  Instant until;
};

Status check_user(const std::string& user, const AccessSettings& access) {
  if (user.empty()) return wrong("USER: must not be empty");
  if (user.size() > ledger::kIdBytesMax) return wrong("USER: has more than 256 bytes");
  for (const std::string& null_id : access.null_user_ids) {
    if (user == null_id) {
      return wrong(
          fmt::format("USER: \"{}\" stands for \"unknown\"; nothing is recorded for it", null_id));
    }
  }
  return {};
}

Result<std::string> message_of(const ErasureOrder& erasure) {
  const ordered_json object = {
      {"user_id", erasure.user}, {"type", "erasure"}, {"timestamp", to_ms(erasure.until)}};
  try {
    return object.dump();
  } catch (const ordered_json::type_error&) {
    return wrong("USER: not UTF-8; no event can carry such an id");
  }
}

Result<Instant> until_of(const CliSettings& settings, Instant now) {
  if (settings.at.empty()) return now;
  const Result<Instant> at = parse_at(settings.at, "--at");
  if (!at.ok()) return at.status();
  if (at.value() > now) {
    return wrong("--at: lies in the future; what has not happened cannot be erased");
  }
  const auto retention = parse_duration(settings.access.retention, "--retention");
  if (!retention.ok()) return retention.status();
  // The updater would skip it, and would read times up to 1973 as seconds.
  if (at.value() <= now - retention.value()) {
    return wrong(fmt::format("--at: nothing from before {} is kept (--retention {})",
                             base::format_instant(now - retention.value()),
                             settings.access.retention));
  }
  return at.value();
}

// A line of a list: an id as it stands, or {"user":"u1"} as the other commands' lines.
Result<std::string> user_of_line(const std::string& line) {
  if (!line.starts_with('{')) return line;
  const auto object = ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  // An id in braces, which is no JSON.
  if (object.is_discarded()) return line;
  const Result<CheckQuestion> question = parse_question(line, Asks::kUserOnly);
  if (!question.ok()) return question.status();
  if (question.value().at) return wrong("\"at\": give --at, which holds for the whole list");
  return question.value().user;
}

// One user per line, as it stands.
Result<std::vector<std::string>> lines_of_list(const std::string& path, std::istream& standard) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file)
      return Status::error(StatusCode::kNotFound, "--input: " + path + " cannot be opened");
  }
  std::istream& from = path == "-" ? standard : file;
  std::vector<std::string> lines;
  for (std::string line; std::getline(from, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  if (from.bad()) return Status::error(StatusCode::kUnavailable, "--input: cannot be read");
  if (lines.empty()) return wrong("--input: names no user");
  return lines;
}

// Everything that is to be forgotten. A list with one mistake in it erases nobody.
Result<std::vector<ErasureOrder>> plan(const CliSettings& settings, Instant now, Streams streams) {
  const Result<Instant> until = until_of(settings, now);
  if (!until.ok()) return until.status();
  const EraseSettings& erase = settings.erase;
  if (erase.input.empty()) {
    if (Status status = check_user(erase.user, settings.access); !status.ok()) return status;
    return std::vector<ErasureOrder>{{erase.user, until.value()}};
  }
  const auto lines = lines_of_list(erase.input, streams.in);
  if (!lines.ok()) return lines.status();
  std::vector<ErasureOrder> erasures;
  for (std::size_t i = 0; i < lines.value().size(); ++i) {
    const Result<std::string> user = user_of_line(lines.value()[i]);
    ErasureOrder& erasure = erasures.emplace_back(ErasureOrder{{}, until.value()});
    if (user.ok()) erasure.user = user.value();
    Status status = user.ok() ? check_user(erasure.user, settings.access) : user.status();
    if (status.ok()) status = message_of(erasure).status();
    if (!status.ok()) {
      return wrong(fmt::format("--input: line {}: {}; nobody was erased", i + 1, status.text()));
    }
  }
  return erasures;
}

// Whether --yes or the person at the terminal confirms it. None: there is nobody to ask.
std::optional<bool> confirmed(const CliSettings& settings,
                              const std::vector<ErasureOrder>& erasures, Streams streams) {
  if (settings.erase.yes) return true;
  const bool can_ask = &streams.in == &std::cin && ::isatty(STDIN_FILENO) != 0;
  if (!can_ask || settings.erase.input == "-") return std::nullopt;
  const std::string of = erasures.size() == 1
                             ? fmt::format("user \"{}\"", base::printable(erasures.front().user))
                             : fmt::format("{} users", erasures.size());
  streams.err << fmt::format("Permanently erase the past of {} up to {}? Type \"yes\" to confirm: ",
                             of, base::format_instant(erasures.front().until));
  streams.err.flush();
  std::string answer;
  std::getline(streams.in, answer);
  return answer == "yes";
}

// The audit line: whose events, until when, asked for when, and the message that does it.
void report(const CliSettings& settings, const ErasureOrder& erasure,
            const kafka::StoredPosition& position, Instant now, Streams streams) {
  if (settings.json) {
    const ordered_json object = {{"user", erasure.user},
                                 {"erased_until", to_ms(erasure.until)},
                                 {"published_at", to_ms(now)},
                                 {"topic", settings.erase.kafka.topic},
                                 {"partition", position.partition},
                                 {"offset", position.offset}};
    streams.out << object.dump() << "\n";
    return;
  }
  streams.out << fmt::format(
      "{} erasure published: user \"{}\", everything up to {}, topic {}, partition {}, offset {}\n",
      base::format_instant(now), erasure.user, base::format_instant(erasure.until),
      settings.erase.kafka.topic, position.partition, position.offset);
}

// Publishes and reports one after the other; the first failure ends it.
Status publish_all(const CliSettings& settings, const kafka::ConnectionOptions& connection,
                   const std::vector<ErasureOrder>& erasures, Streams streams) {
  const auto timeout = parse_duration(settings.access.timeout, "--timeout");
  if (!timeout.ok()) return timeout.status();
  auto publisher = kafka::Publisher::open(connection);
  if (!publisher.ok()) return publisher.status();
  for (std::size_t i = 0; i < erasures.size(); ++i) {
    const Result<std::string> message = message_of(erasures[i]);
    if (!message.ok()) return message.status();
    const Result<kafka::StoredPosition> position = publisher.value()->publish(
        settings.erase.kafka.topic, erasures[i].user, message.value(), timeout.value());
    if (!position.ok()) {
      Status failed = with_kafka_options(position.status());
      if (i == 0) return failed;
      return Status::error(failed.code(),
                           fmt::format("{} of {} erasures were published; the next one was not: {}",
                                       i, erasures.size(), failed.text()),
                           true);
    }
    report(settings, erasures[i], position.value(), base::wall_now(), streams);
  }
  return {};
}

}  // namespace

int run_erase(const CliSettings& settings, Streams streams) {
  const Result<std::vector<ErasureOrder>> erasures = plan(settings, base::wall_now(), streams);
  if (!erasures.ok()) return fail(streams, erasures.status());
  if (const auto first = message_of(erasures.value().front()); !first.ok()) {
    return fail(streams, first.status());
  }
  const auto connection = kafka_connection(settings.erase.kafka, "fcap-erase");
  if (!connection.ok()) return fail(streams, connection.status());
  const std::optional<bool> yes = confirmed(settings, erasures.value(), streams);
  if (!yes) {
    return fail(streams, wrong("erase: needs --yes, because standard input is not a terminal, so "
                               "nobody can be asked"));
  }
  if (!*yes) {
    streams.err << "fcap: nothing was erased\n";
    return kExitFailure;
  }
  const Status published = publish_all(settings, connection.value(), erasures.value(), streams);
  return published.ok() ? kExitOk : fail(streams, published);
}

}  // namespace fcap::cli
