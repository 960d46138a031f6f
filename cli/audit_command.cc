// fcap audit.
#include <algorithm>
#include <charconv>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/time_text.h"
#include "cli/audit.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/kafka_connection.h"
#include "cli/record_reader.h"
#include "cli/rule_loading.h"
#include "events/event_decoder.h"
#include "kafka/range_reader.h"
#include "updater/options/signatures.h"

namespace fcap::cli {
namespace {

// "12,40,7": one offset per partition, in their order; empty: none is given.
Result<std::vector<std::int64_t>> parse_offsets(std::string_view text, const char* flag) {
  std::vector<std::int64_t> offsets;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    std::int64_t offset = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), offset);
    if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size() || offset < 0) {
      return Status::error(
          StatusCode::kInvalidArgument,
          fmt::format("{}: \"{}\" is not an offset; write one per partition, such as "
                      "12,40,7",
                      flag, word));
    }
    offsets.push_back(offset);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return offsets;
}

Status narrow(std::vector<kafka::OffsetSpan>& spans, const AuditSettings& audit) {
  const auto from = parse_offsets(audit.from_offsets, "--from-offsets");
  if (!from.ok()) return from.status();
  const auto to = parse_offsets(audit.to_offsets, "--to-offsets");
  if (!to.ok()) return to.status();
  for (const auto* given : {&from.value(), &to.value()}) {
    if (!given->empty() && given->size() != spans.size()) {
      return Status::error(StatusCode::kInvalidArgument,
                           fmt::format("--from-offsets and --to-offsets: the topic has {} "
                                       "partitions, {} offsets are given",
                                       spans.size(), given->size()));
    }
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (!from.value().empty() && from.value()[i] > spans[i].to) {
      return Status::error(StatusCode::kInvalidArgument,
                           fmt::format("--from-offsets: {} is beyond the end of partition {}, {}",
                                       from.value()[i], spans[i].partition, spans[i].to));
    }
    if (!from.value().empty()) spans[i].from = std::max(spans[i].from, from.value()[i]);
    if (!to.value().empty()) spans[i].to = std::min(spans[i].to, to.value()[i]);
  }
  return {};
}

Status read_topic(const std::string& topic, const AuditSettings& settings,
                  const kafka::ConnectionOptions& connection, std::chrono::milliseconds timeout,
                  Audit& audit) {
  auto reader = kafka::RangeReader::open(connection, topic, timeout);
  if (!reader.ok()) return reader.status();
  auto spans = reader.value()->whole_topic();
  if (!spans.ok()) return spans.status();
  if (Status status = narrow(spans.value(), settings); !status.ok()) return status;
  const auto signatures = updater::make_signature_check(settings.signatures, {});
  if (!signatures.ok()) {
    return Status::error(StatusCode::kInvalidArgument, "--config: " + signatures.status().text());
  }
  const auto decoder = events::make_json_event_decoder();
  return reader.value()->read(spans.value(), [&](const kafka::RangeMessage& message) {
    events::Event event;
    if (audit.too_large(message.value) || decoder->decode_one(message.value, event) ||
        (signatures.value() && audit.has_user(event) && signatures.value()->refusal_of(event))) {
      audit.add_rejected();
    } else {
      audit.add(event, message.timestamp, !message.reason.empty());
    }
  });
}

std::vector<std::string> topics_of(const AuditSettings& settings) {
  std::vector<std::string> topics = {settings.kafka.topic};
  topics.insert(topics.end(), settings.more_topics.begin(), settings.more_topics.end());
  return topics;
}

Status read_topics(const AuditSettings& settings, const kafka::ConnectionOptions& connection,
                   std::chrono::milliseconds timeout, Audit& audit) {
  for (const std::string& topic : topics_of(settings)) {
    Status status = read_topic(topic, settings, connection, timeout, audit);
    if (!status.ok()) return status;
  }
  return {};
}

// Silence about nothing would look like a clean result.
Status nothing_audited(const AuditReport& report, const AuditSettings& audit) {
  const std::string topics = fmt::format("topic {}", fmt::join(topics_of(audit), " and "));
  std::string why = topics + ": the range holds no messages";
  if (report.messages > 0) {
    why = fmt::format(
        "{}: of {} none is an event of {}", topics, counted(report.messages, "message", "messages"),
        audit.user_prefix.empty()
            ? std::string("a user")
            : fmt::format("a user whose id begins with \"{}\" (--user-prefix)", audit.user_prefix));
  }
  return Status::error(StatusCode::kNotFound, "audit: nothing was compared: " + why);
}

Result<AuditOptions> audit_options(const CliSettings& settings) {
  AuditOptions options;
  options.user_prefix = settings.audit.user_prefix;
  options.propagation = std::chrono::milliseconds(settings.audit.propagation_ms);
  options.null_user_ids = settings.access.null_user_ids;
  options.message_bytes_max = settings.audit.message_bytes_max;
  const auto retention = parse_duration(settings.access.retention, "--retention");
  if (!retention.ok()) return retention.status();
  options.retention = retention.value();
  const auto allowed_future = parse_duration(settings.audit.allowed_future, "--allowed-future");
  if (!allowed_future.ok()) return allowed_future.status();
  options.allowed_future = allowed_future.value();
  return options;
}

std::uint64_t over_cap_other(const AuditReport& report) {
  return report.over_cap - report.over_cap_in_flight - report.over_cap_fail_open;
}

nlohmann::ordered_json to_json(const AuditReport& report, std::uint64_t rules_version) {
  return {{"messages", report.messages},
          {"rejected", report.rejected},
          {"other_users", report.other_users},
          {"null_user", report.null_user},
          {"erasures", report.erasures},
          {"users", report.users},
          {"produced", report.produced},
          {"repeated", report.repeated},
          {"repeated_ids", report.repeated_ids},
          {"counted", report.counted},
          {"expired", report.expired},
          {"in_future", report.in_future},
          {"erased", report.erased},
          {"trimmed", report.trimmed},
          {"in_flight", report.in_flight},
          {"lost", report.lost},
          {"double", report.extra},
          {"erasures_lost", report.erasures_lost},
          {"unreadable_records", report.unreadable},
          {"rules_version", rules_version},
          {"over_cap", report.over_cap},
          {"over_cap_in_flight", report.over_cap_in_flight},
          {"over_cap_fail_open", report.over_cap_fail_open},
          {"over_cap_other", over_cap_other(report)}};
}

void print_text(const AuditReport& report, const AuditOptions& options, std::uint64_t rules_version,
                std::ostream& out) {
  out << fmt::format("read      {}: {} rejected, {} without a user id, {} of other users, {}\n",
                     counted(report.messages, "message", "messages"), report.rejected,
                     report.null_user, report.other_users,
                     counted(report.erasures, "erasure", "erasures"));
  out << fmt::format("produced  {} of {} ({})\n", counted(report.produced, "event", "events"),
                     counted(report.users, "user", "users"),
                     counted(report.repeated, "message repeats one", "messages repeat one"));
  if (report.repeated_ids > 0) {
    out << fmt::format(
        "repeated  {} an event's id at a time more than 5 min from it: ids that are not unique, "
        "and "
        "impressions that do not count\n",
        counted(report.repeated_ids, "message carries", "messages carry"));
  }
  out << fmt::format("counted   {}\n", counted(report.counted, "entry", "entries"));
  out << fmt::format(
      "left out  {} older than the retention ({}), {} more than {} in the future, {} erased, {} "
      "trimmed for size, {} in flight\n",
      report.expired, base::spoken_length(options.retention), report.in_future,
      base::spoken_length(options.allowed_future), report.erased, report.trimmed, report.in_flight);
  out << fmt::format("lost      {}\n", report.lost);
  out << fmt::format("double    {}\n", report.extra);
  if (report.erasures_lost > 0) {
    out << fmt::format("erasures lost: {} not erased as the topic demands\n",
                       counted(report.erasures_lost, "user is", "users are"));
  }
  if (report.unreadable > 0) {
    out << fmt::format("unreadable {}\n", counted(report.unreadable, "record", "records"));
  }
  out << fmt::format(
      "over cap  {}: {} shown within {} of an impression that capped them, {} shown fail-open, {} "
      "for another reason; by the rules of today (version {}), without segments\n",
      report.over_cap, report.over_cap_in_flight, base::spoken_length(options.propagation),
      report.over_cap_fail_open, over_cap_other(report), rules_version);
}

}  // namespace

int run_audit(const CliSettings& settings, Streams streams) {
  const auto timeout = parse_duration(settings.access.timeout, "--timeout");
  if (!timeout.ok()) return fail(streams, timeout.status());
  const auto connection = kafka_connection(settings.audit.kafka, "fcap-audit");
  if (!connection.ok()) return fail(streams, connection.status());
  const Result<AuditOptions> options = audit_options(settings);
  if (!options.ok()) return fail(streams, options.status());
  const Result<LoadedRules> rules = load_rules(settings.access);
  if (!rules.ok()) return fail(streams, rules.status());
  Audit audit(options.value(), rules.value().rules);
  const Status read =
      with_kafka_options(read_topics(settings.audit, connection.value(), timeout.value(), audit));
  if (!read.ok()) return fail(streams, read);
  Result<std::unique_ptr<RecordReader>> records = RecordReader::open(settings.access);
  if (!records.ok()) return fail(streams, records.status());
  const Result<AuditReport> report = audit.compare(
      [&records](const std::string& user) { return records.value()->read(user); }, base::wall_now);
  if (!report.ok()) return fail(streams, report.status());
  if (report.value().nothing_audited()) {
    return fail(streams, nothing_audited(report.value(), settings.audit));
  }
  const std::uint64_t rules_version = rules.value().rules->version();
  if (settings.json) {
    streams.out << to_json(report.value(), rules_version).dump() << "\n";
  } else {
    print_text(report.value(), options.value(), rules_version, streams.out);
  }
  return report.value().exact() ? kExitOk : kExitFailure;
}

}  // namespace fcap::cli
