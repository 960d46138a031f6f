#include "cli/arguments.h"

#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <fcap/version.h>

#include "cli/option_mistakes.h"
#include "cli/updater_config.h"
#include "command_line/man_page.h"
#include "command_line/usage_mistakes.h"

namespace fcap::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 something failed or differs, 2 wrong use.\n"
    "docs/cli.md shows each command's output.";

// The commands that ask about candidates end their help with this.
constexpr const char* kQuestionFooter =
    "Candidates are campaign ids, with a creative after a slash: c456 or c456/cr9.\n"
    "Exit codes: 0 answered (whatever the verdicts), 1 something failed, 2 wrong use.\n"
    "docs/cli.md shows each command's output.";

void add_tls_options(CLI::App& app, RedisTls& tls) {
  app.add_flag("--redis-tls", tls.enabled, "TLS towards Redis")
      ->envname("FCAP_REDIS_TLS")
      ->group("Redis");
  app.add_option("--redis-ca-file", tls.ca_file,
                 "Authorities to trust (PEM); default: the system's")
      ->envname("FCAP_REDIS_CA_FILE")
      ->group("Redis");
  app.add_option("--redis-ca-directory", tls.ca_directory, "Directory of authorities to trust")
      ->envname("FCAP_REDIS_CA_DIRECTORY")
      ->group("Redis");
  app.add_option("--redis-certificate-file", tls.certificate_file, "Client certificate (PEM)")
      ->envname("FCAP_REDIS_CERTIFICATE_FILE")
      ->group("Redis");
  app.add_option("--redis-key-file", tls.key_file, "Private key of the client certificate")
      ->envname("FCAP_REDIS_KEY_FILE")
      ->group("Redis");
  app.add_option("--redis-server-name", tls.server_name,
                 "Name in the server's certificate; default: the host of --redis")
      ->envname("FCAP_REDIS_SERVER_NAME")
      ->group("Redis");
}

void add_redis_options(CLI::App& app, AccessSettings& access) {
  app.add_option("--redis", access.redis,
                 "Redis: host:port, /path/to/socket, redis://[user@]host[:port][/database], "
                 "redis-sentinel://[user@]host[:port],.../master[/database] or "
                 "redis-cluster://[user@]host[:port],...")
      ->envname("FCAP_REDIS")
      ->capture_default_str()
      ->group("Redis");
  app.add_option("--redis-user", access.redis_user, "ACL user; empty for the default user")
      ->envname("FCAP_REDIS_USER")
      ->group("Redis");
  app.add_option("--redis-password-file", access.redis_password_file,
                 "File that holds the password (or set FCAP_REDIS_PASSWORD)")
      ->envname("FCAP_REDIS_PASSWORD_FILE")
      ->group("Redis");
  app.add_option("--redis-database", access.redis_database, "Database number")
      ->envname("FCAP_REDIS_DATABASE")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str()
      ->group("Redis");
  app.add_option("--redis-sentinel-user", access.redis_sentinel_user,
                 "ACL user on the Sentinels; empty for the default user")
      ->envname("FCAP_REDIS_SENTINEL_USER")
      ->group("Redis");
  app.add_option("--redis-sentinel-password-file", access.redis_sentinel_password_file,
                 "File with the Sentinels' password (or set FCAP_REDIS_SENTINEL_PASSWORD)")
      ->envname("FCAP_REDIS_SENTINEL_PASSWORD_FILE")
      ->group("Redis");
  add_tls_options(app, access.redis_tls);
  app.add_option("--key-prefix", access.key_prefix, "Prefix of the keys, as the updater's")
      ->envname("FCAP_KEY_PREFIX")
      ->capture_default_str()
      ->group("Redis");
  app.add_option("--timeout", access.timeout, "Longest wait for a server, such as 500ms or 5s")
      ->envname("FCAP_TIMEOUT")
      ->capture_default_str()
      ->group("Redis");
}

void add_rule_options(CLI::App& app, AccessSettings& access) {
  app.add_option("--rules", access.rules_file,
                 "Rules from this file (JSON or snapshot), not from PostgreSQL")
      ->envname("FCAP_RULES_FILE")
      ->group("Rules");
  app.add_option("--postgres", access.postgres, "Rules from PostgreSQL: a libpq connection string")
      ->envname("FCAP_POSTGRES")
      ->group("Rules");
  app.add_option("--snapshot", access.snapshot_file,
                 "Rules from this snapshot where PostgreSQL is not set or does not answer")
      ->envname("FCAP_RULES_SNAPSHOT")
      ->group("Rules");
  app.add_option(
         "--segments", access.segments_directory,
         "Stored segments from this directory of NAME.ids and NAME.roaring64 files; without "
         "it from where the rules are, if that is PostgreSQL")
      ->envname("FCAP_SEGMENTS")
      ->group("Rules");
  app.add_option("--retention", access.retention, "How long events are kept, as the updater's")
      ->envname("FCAP_RETENTION")
      ->capture_default_str()
      ->group("Rules");
  app.add_option("--null-user-id", access.null_user_ids,
                 "User id that stands for \"unknown\"; may be repeated")
      ->envname("FCAP_NULL_USER_IDS")
      ->delimiter(',')
      ->capture_default_str()
      ->group("Rules");
}

void add_common(CLI::App& command, CliSettings& settings) {
  command.add_flag("--json", settings.json, "Print JSON");
  command.footer(kFooter);
}

void add_at(CLI::App& command, CliSettings& settings) {
  command
      .add_option(
          "--at", settings.at,
          "Answer as of this instant (RFC 3339, milliseconds since 1970, -1h, now or yesterday): "
          "later entries are left out. When an event arrived is not recorded, so what was known "
          "then may have been "
          "less")
      ->check(command_line::not_empty());
}

void add_time_zone(CLI::App& command, CliSettings& settings) {
  command
      .add_option("--time-zone", settings.time_zone,
                  "Write dates and times by the clocks of this zone, such as Europe/Berlin; "
                  "without: UTC")
      ->envname("FCAP_TIME_ZONE")
      ->check(command_line::not_empty());
}

void add_input(CLI::App& command, std::string& input, const char* one_line) {
  command.add_option("--input", input,
                     std::string("Questions from this file (- is standard input), one JSON object "
                                 "per line: ") +
                         one_line + "; prints one JSON object per line");
}

// What check and explain have in common.
void add_question(CLI::App& command, QuestionSettings& question, CliSettings& settings) {
  command.add_option("user", question.user, "User id");
  command.add_option("candidates", question.candidates, "Campaigns, or campaign/creative");
  command.add_option("--segment", question.segments,
                     "A segment that the user is in; may be repeated");
  add_input(command, question.input,
            R"({"user":"u1","candidates":["c1","c2/cr9"],"at":...,"segments":[...]})");
  command.add_option(
      "--events", question.events,
      "Answer from this file of event messages, one per line as they stand in Kafka, "
      "instead of Redis; without USER, questions are read as with --input -");
  add_at(command, settings);
  add_time_zone(command, settings);
  add_common(command, settings);
  command.footer(kQuestionFooter);
}

CLI::App* add_check(CLI::App& app, CliSettings& settings) {
  CLI::App* command =
      app.add_subcommand("check", "Which of these candidates may be shown to the user?");
  add_question(*command, settings.check, settings);
  return command;
}

CLI::App* add_show(CLI::App& app, CliSettings& settings) {
  CLI::App* command = app.add_subcommand("show", "Show what is recorded about the user");
  command->add_option("user", settings.show.user, "User id");
  add_input(*command, settings.show.input, R"({"user":"u1","at":...})");
  command
      ->add_option("--name", settings.show.names,
                   "An id of a campaign or creative that no rule names, to be shown instead of its "
                   "hash; may be repeated")
      ->allow_extra_args(false);
  add_at(*command, settings);
  add_time_zone(*command, settings);
  add_common(*command, settings);
  return command;
}

CLI::App* add_explain(CLI::App& app, CliSettings& settings) {
  CLI::App* command = app.add_subcommand(
      "explain", "Show every rule that applies, its count, and when it allows again");
  add_question(*command, settings.explain, settings);
  return command;
}

CLI::App* add_rules(CLI::App& app, CliSettings& settings) {
  CLI::App* command =
      app.add_subcommand("rules", "Show which rules are loaded, their source and their age");
  command->add_flag("--check", settings.rules.check,
                    "Only check them: print mistakes and warnings; exit code 1 on a mistake");
  add_time_zone(*command, settings);
  add_common(*command, settings);
  return command;
}

// Which topic, and how to reach Kafka: all but the brokers.
void add_topic(CLI::App& command, TopicSettings& kafka) {
  command.add_option("--topic", kafka.topic, "Topic of the events")->capture_default_str();
  command
      .add_option("--kafka-config", kafka.config_file,
                  "File of librdkafka properties, one name=value per line: TLS, passwords")
      ->envname("FCAP_KAFKA_CONFIG");
  command
      .add_option("--kafka-property", kafka.properties,
                  "A librdkafka property; may be repeated, and overrides the file")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
}

void add_kafka(CLI::App& command, TopicSettings& kafka) {
  command.add_option("--brokers", kafka.brokers, "Kafka bootstrap servers")
      ->envname("FCAP_BROKERS")
      ->capture_default_str();
  add_topic(command, kafka);
}

CLI::App* add_audit(CLI::App& app, CliSettings& settings) {
  AuditSettings& audit = settings.audit;
  CLI::App* command = app.add_subcommand(
      "audit",
      "Compare the topic with the ledgers, event by event; exit code 1 when anything is lost or "
      "counted twice, or when there was nothing to compare");
  add_kafka(*command, audit.kafka);
  command->add_option("--user-prefix", audit.user_prefix,
                      "Only users whose id begins with this. Entries that no event of the range "
                      "explains count as double, so a range should hold all events of its users");
  CLI::Option* more_topics =
      command
          ->add_option("--also-topic", audit.more_topics,
                       "Another topic that is counted in the same Redis, such as a copy of another "
                       "region's; may be repeated")
          ->allow_extra_args(false)
          ->check(command_line::not_empty());
  command
      ->add_option("--from-offsets", audit.from_offsets,
                   "The first offset of each partition, such as 0,12,7; by default the first that "
                   "the topic holds")
      ->excludes(more_topics);
  command
      ->add_option("--to-offsets", audit.to_offsets,
                   "The offset after the last one of each partition; by default the present end")
      ->excludes(more_topics);
  command
      ->add_option("--propagation-ms", audit.propagation_ms,
                   "An impression published less than this before another counts as in flight")
      ->check(CLI::Range(0, 86'400'000))
      ->capture_default_str();
  command
      ->add_option("--allowed-future", audit.allowed_future,
                   "How far in the future an event may lie, as the updater's ledger.allowed_future")
      ->capture_default_str();
  add_common(*command, settings);
  return command;
}

CLI::App* add_erase(CLI::App& app, CliSettings& settings) {
  EraseSettings& erase = settings.erase;
  CLI::App* command = app.add_subcommand(
      "erase",
      "Erase the user's past up to now, permanently: publishes an erasure event, which the "
      "updater turns into a mark in the user's record. Later events count again");
  command->add_option("user", erase.user, "User id");
  command->add_option(
      "--input", erase.input,
      "Erase all users of this list, one per line: an id, or {\"user\":\"u1\"} (\"-\": standard "
      "input)");
  command
      ->add_option("--at", settings.at,
                   "Up to and including this instant instead of now (RFC 3339, milliseconds since "
                   "1970, -1h or yesterday)")
      ->check(command_line::not_empty());
  add_kafka(*command, erase.kafka);
  command->add_flag("--yes", erase.yes, "Do not ask for confirmation; required without a terminal");
  add_common(*command, settings);
  return command;
}

CLI::App* add_simulate(CLI::App& app, CliSettings& settings) {
  SimulateSettings& simulate = settings.simulate;
  CLI::App* command = app.add_subcommand(
      "simulate", "Apply rule sets to an impression log and compare what each would have blocked");
  command->add_option(
      "--log", simulate.log_files,
      "Log: CSV with a header line, or event messages, one per line; gzip or plain; "
      "may be repeated");
  command->add_option("--rules", simulate.rules_files,
                      "Rules file (JSON or snapshot); repeated: the rule sets are compared");
  command->add_option("--kafka", simulate.kafka.brokers,
                      "Kafka bootstrap servers: read the events that a topic holds");
  add_topic(*command, simulate.kafka);
  command
      ->add_option("--column", simulate.columns,
                   "The name of a column in the CSV log, such as user_id=uid; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=COLUMN");
  command
      ->add_option(
          "--sweep", simulate.sweep,
          "Compare limits: limit=1..10 gives every rule that caps impressions each of them "
          "in turn, RULE:limit=1..10 one rule")
      ->type_name("[RULE:]limit=FROM..TO");
  command->add_option("--html", simulate.html, "Also write a page with plots to this file");
  command->add_option("--csv", simulate.csv, "Also write a line per campaign and rule set");
  command->add_option("--names", simulate.names,
                      "Names of campaigns and advertisers: CSV with the columns id and name, or a "
                      "JSON object");
  command
      ->add_option("--cpm", simulate.cpm,
                   "The price of a thousand impressions: reports say what the lost ones are worth")
      ->check(CLI::Range(0.0, 1e6));
  add_time_zone(*command, settings);
  command->add_flag("--progress", simulate.progress,
                    "Show progress even when standard error is not a terminal");
  add_common(*command, settings);
  return command;
}

// What the updater's configuration says of options that were not given.
Status take_config(const CLI::App& app, const CLI::App* command, CliSettings& settings) {
  if (settings.updater_config.empty()) return {};
  const auto is_given = [&](const char* name) {
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr && command != nullptr) option = command->get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  };
  return take_updater_config(settings.updater_config, is_given, settings);
}

// Not shown in the help: every user of the machine can read a command line.
void add_password_options(CLI::App& app, AccessSettings& access) {
  app.add_option("--redis-password", access.redis_password)
      ->envname("FCAP_REDIS_PASSWORD")
      ->group("");
  app.add_option("--redis-sentinel-password", access.redis_sentinel_password)
      ->envname("FCAP_REDIS_SENTINEL_PASSWORD")
      ->group("");
}

int wrong_use(const std::vector<std::string>& mistakes, const CLI::App* command, Streams streams) {
  const std::string name = command == nullptr ? "fcap" : "fcap " + command->get_name();
  for (const std::string& mistake : mistakes) streams.err << name << ": " << mistake << "\n";
  streams.err << "Run with --help for more information.\n";
  return kExitUsage;
}

}  // namespace

std::optional<int> parse_command_line(int argc, const char* const* argv, CliSettings& settings,
                                      Streams streams) {
  CLI::App app("Frequency caps: check, explain, inspect and erase.", "fcap");
  app.set_version_flag("--version", "fcap " FCAP_VERSION);
  // A missing subcommand and unexpected arguments are reported below.
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.fallthrough();
  app.footer(kFooter);
  app.add_option("--config", settings.updater_config,
                 "fcap-updater's configuration file; supplies what is not given otherwise: "
                 "Redis, PostgreSQL, Kafka, key prefix, retention, null user ids")
      ->envname("FCAP_CONFIG");
  add_redis_options(app, settings.access);
  add_rule_options(app, settings.access);
  const CLI::App* check = add_check(app, settings);
  const CLI::App* show = add_show(app, settings);
  const CLI::App* explain = add_explain(app, settings);
  const CLI::App* rules = add_rules(app, settings);
  const CLI::App* audit = add_audit(app, settings);
  const CLI::App* simulate = add_simulate(app, settings);
  const CLI::App* erase = add_erase(app, settings);
  add_password_options(app, settings.access);
  // For the build, which makes fcap(1) of it.
  bool man_page = false;
  app.add_flag("--man-page", man_page)->group("");
  const auto given = [&app]() -> const CLI::App* {
    return app.get_subcommands().empty() ? nullptr : app.get_subcommands().front();
  };
  try {
    app.parse(command_line::arguments(argc, argv));
  } catch (const CLI::ParseError& ended) {
    if (ended.get_exit_code() == 0) {
      app.exit(ended, streams.out, streams.err);
      return kExitOk;
    }
    return wrong_use({command_line::text_of(ended)}, given(), streams);
  }
  if (man_page) {
    streams.out << command_line::man_page_of(app, {.section = "1",
                                                   .version = FCAP_VERSION,
                                                   .exit_status = kFooter,
                                                   .see_also = "fcap-updater(8), updater.json(5)"});
    return kExitOk;
  }
  if (const auto mistakes = command_line::mistakes_of(app); !mistakes.empty()) {
    return wrong_use(mistakes, given(), streams);
  }
  if (check->parsed()) settings.command = CliSettings::Subcommand::kCheck;
  if (show->parsed()) settings.command = CliSettings::Subcommand::kShow;
  if (explain->parsed()) settings.command = CliSettings::Subcommand::kExplain;
  if (rules->parsed()) settings.command = CliSettings::Subcommand::kRules;
  if (audit->parsed()) settings.command = CliSettings::Subcommand::kAudit;
  if (simulate->parsed()) settings.command = CliSettings::Subcommand::kSimulate;
  if (erase->parsed()) settings.command = CliSettings::Subcommand::kErase;
  const auto has_user = [](const CLI::App* command) {
    return command->get_option("user")->count() > 0;
  };
  settings.check.has_user = has_user(check);
  settings.show.has_user = has_user(show);
  settings.explain.has_user = has_user(explain);
  if (const Status taken = take_config(app, given(), settings); !taken.ok()) {
    return wrong_use({taken.text()}, given(), streams);
  }
  if (const std::string mistake = mistake_in(settings); !mistake.empty()) {
    return wrong_use({mistake}, given(), streams);
  }
  return std::nullopt;
}

}  // namespace fcap::cli
