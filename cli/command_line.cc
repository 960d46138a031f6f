#include "cli/command_line.h"

#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <fcap/version.h>

#include "cli/updater_config.h"
#include "command_line/mistakes.h"

namespace fcap::cli {
namespace {

constexpr const char* kFooter =
    "Candidates are campaign ids, with a creative after a slash: c456 or c456/cr9.\n"
    "Exit codes: 0 answered (whatever the verdicts), 1 something failed, 2 wrong use.\n"
    "docs/cli.md shows each command's output.";

void add_redis_options(CLI::App& app, AccessSettings& access) {
  app.add_option("--redis", access.redis,
                 "Redis: host:port, /path/to/socket or redis://[user@]host[:port][/database]")
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

void add_common(CLI::App& command, Settings& settings) {
  command.add_flag("--json", settings.json, "Print JSON");
  command.footer(kFooter);
}

void add_at(CLI::App& command, Settings& settings) {
  command
      .add_option(
          "--at", settings.at,
          "Answer as of this instant (RFC 3339, milliseconds since 1970, -1h, now or yesterday): "
          "later entries are left out. When an event arrived is not recorded, so what was known "
          "then may have been "
          "less")
      ->check(command_line::not_empty());
}

void add_input(CLI::App& command, std::string& input, const char* one_line) {
  command.add_option("--input", input,
                     std::string("Questions from this file (- is standard input), one JSON object "
                                 "a line: ") +
                         one_line + "; one JSON object a line out");
}

/// What check and explain have in common.
void add_question(CLI::App& command, QuestionSettings& question, Settings& settings) {
  command.add_option("user", question.user, "User id");
  command.add_option("candidates", question.candidates, "Campaigns, or campaign/creative");
  command.add_option("--segment", question.segments, "Segment the user is in; may be repeated");
  add_input(command, question.input,
            R"({"user":"u1","candidates":["c1","c2/cr9"],"at":...,"segments":[...]})");
  command.add_option("--events", question.events,
                     "Answer from this file of event messages, one a line as they stand in Kafka, "
                     "instead of Redis; without USER, questions are read as with --input -");
  add_at(command, settings);
  add_common(command, settings);
}

CLI::App* add_check(CLI::App& app, Settings& settings) {
  CLI::App* command =
      app.add_subcommand("check", "Which of these candidates may be shown to the user?");
  add_question(*command, settings.check, settings);
  return command;
}

CLI::App* add_show(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand("show", "What is recorded about the user?");
  command->add_option("user", settings.show.user, "User id");
  add_input(*command, settings.show.input, R"({"user":"u1","at":...})");
  add_at(*command, settings);
  add_common(*command, settings);
  return command;
}

CLI::App* add_explain(CLI::App& app, Settings& settings) {
  CLI::App* command =
      app.add_subcommand("explain", "Every rule that applies, its count and when it lets pass");
  add_question(*command, settings.explain, settings);
  return command;
}

CLI::App* add_rules(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand("rules", "Which rules are there, from where, how old?");
  command->add_flag("--check", settings.rules.check,
                    "Only check them: print mistakes and warnings; exit code 1 on a mistake");
  add_common(*command, settings);
  return command;
}

/// Which topic, and how to reach Kafka: all but the brokers.
void add_topic(CLI::App& command, KafkaSettings& kafka) {
  command.add_option("--topic", kafka.topic, "Topic of the events")->capture_default_str();
  command
      .add_option("--kafka-config", kafka.config_file,
                  "File of librdkafka's properties, one name=value a line: TLS, passwords")
      ->envname("FCAP_KAFKA_CONFIG");
  command
      .add_option("--kafka-property", kafka.properties,
                  "One of librdkafka's properties; may be repeated, and wins over the file")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
}

void add_kafka(CLI::App& command, KafkaSettings& kafka) {
  command.add_option("--brokers", kafka.brokers, "Kafka bootstrap servers")
      ->envname("FCAP_BROKERS")
      ->capture_default_str();
  add_topic(command, kafka);
}

CLI::App* add_audit(CLI::App& app, Settings& settings) {
  AuditSettings& audit = settings.audit;
  CLI::App* command = app.add_subcommand(
      "audit",
      "Is what the topic holds what the ledgers count? Compares them event by event; exit code 1 "
      "when anything is lost or double, or when there was nothing to compare");
  add_kafka(*command, audit.kafka);
  command->add_option("--user-prefix", audit.user_prefix,
                      "Only users whose id begins with this. Entries that no event of the range "
                      "explains count as double, so a range should hold all events of its users");
  command->add_option("--from-offsets", audit.from_offsets,
                      "The first offset of each partition, such as 0,12,7; without: the first "
                      "there is");
  command->add_option(
      "--to-offsets", audit.to_offsets,
      "The offset behind the last one of each partition; without: all there is now");
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

CLI::App* add_erase(CLI::App& app, Settings& settings) {
  EraseSettings& erase = settings.erase;
  CLI::App* command = app.add_subcommand(
      "erase",
      "Forget everything of the user up to now, for ever: publishes an erasure event, which the "
      "updater turns into a mark in the user's record. Later events count again");
  command->add_option("user", erase.user, "User id")->required();
  command
      ->add_option("--at", settings.at,
                   "Up to and including this instant instead of now (RFC 3339, milliseconds since "
                   "1970, -1h or yesterday)")
      ->check(command_line::not_empty());
  add_kafka(*command, erase.kafka);
  command->add_flag("--yes", erase.yes, "Do not ask; required where nobody can be asked");
  add_common(*command, settings);
  return command;
}

CLI::App* add_simulate(CLI::App& app, Settings& settings) {
  SimulateSettings& simulate = settings.simulate;
  CLI::App* command = app.add_subcommand(
      "simulate", "What would these rules have made of this impression log? Side by side");
  command->add_option("--log", simulate.log_files,
                      "Log: CSV with a header line, or event messages, one a line; gzip or plain; "
                      "may be repeated");
  command->add_option("--rules", simulate.rules_files,
                      "Rules file (JSON or snapshot); repeated: the rule sets are compared");
  command->add_option("--kafka", simulate.kafka.brokers,
                      "Kafka bootstrap servers: read the events that a topic holds");
  add_topic(*command, simulate.kafka);
  command
      ->add_option("--column", simulate.columns,
                   "What a CSV log calls a column, such as user_id=uid; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=COLUMN");
  command->add_option("--html", simulate.html, "Also write a page with plots to this file");
  command->add_flag("--progress", simulate.progress,
                    "Say how far it is, even where standard error is no terminal");
  add_common(*command, settings);
  return command;
}

std::string mistake_in(const QuestionSettings& question, const Settings& settings) {
  const AccessSettings& access = settings.access;
  if (!question.input.empty() && question.has_user) {
    return "USER and CANDIDATE do not go with --input: the questions are there";
  }
  if (question.from_lines() && !settings.at.empty()) {
    return "--at does not go with questions in lines: give each its own \"at\"";
  }
  if (!question.from_lines() && (!question.has_user || question.candidates.empty())) {
    return "needs USER and at least one CANDIDATE, or --input FILE";
  }
  if (!question.events.empty() && access.rules_file.empty() && access.snapshot_file.empty() &&
      access.postgres.empty()) {
    return "--events needs the rules: --rules FILE";
  }
  return {};
}

std::string mistake_in(const ShowSettings& show, const Settings& settings) {
  if (show.has_user && !show.input.empty()) {
    return "USER does not go with --input: the users are there";
  }
  if (!show.has_user && show.input.empty()) return "needs USER, or --input FILE";
  if (!show.input.empty() && !settings.at.empty()) {
    return "--at does not go with --input: give each line its own \"at\"";
  }
  return {};
}

/// What the single options cannot tell by themselves.
std::string mistake_in(const Settings& settings) {
  switch (settings.command) {
    case Settings::Command::kCheck:
      return mistake_in(settings.check, settings);
    case Settings::Command::kExplain:
      return mistake_in(settings.explain, settings);
    case Settings::Command::kShow:
      return mistake_in(settings.show, settings);
    case Settings::Command::kSimulate:
      return settings.simulate.log_files.empty() && settings.simulate.kafka.brokers.empty()
                 ? "needs --log FILE, or --kafka BROKERS"
                 : "";
    default:
      return {};
  }
}

/// What the updater's configuration says of options that were not given.
Status take_config(const CLI::App& app, const CLI::App* command, Settings& settings) {
  if (settings.updater_config.empty()) return {};
  const auto is_given = [&](const char* name) {
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr && command != nullptr) option = command->get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  };
  return take_updater_config(settings.updater_config, is_given, settings);
}

int wrong_use(const std::vector<std::string>& mistakes, const CLI::App* command, Streams streams) {
  const std::string name = command == nullptr ? "fcap" : "fcap " + command->get_name();
  for (const std::string& mistake : mistakes) streams.err << name << ": " << mistake << "\n";
  streams.err << "Run with --help for more information.\n";
  return kExitUsage;
}

}  // namespace

std::optional<int> parse_command_line(int argc, const char* const* argv, Settings& settings,
                                      Streams streams) {
  CLI::App app("Frequency caps: ask, look and explain.", "fcap");
  app.set_version_flag("--version", "fcap " FCAP_VERSION);
  // That there is one, and what nobody takes, is looked at below.
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.fallthrough();
  app.footer(kFooter);
  app.add_option("--config", settings.updater_config,
                 "Take from this file, fcap-updater's configuration, what is not given otherwise: "
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
  // Not offered in the help: what stands on a command line can be read by every user of the
  // machine.
  app.add_option("--redis-password", settings.access.redis_password)
      ->envname("FCAP_REDIS_PASSWORD")
      ->group("");
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
  if (const auto mistakes = command_line::mistakes_of(app); !mistakes.empty()) {
    return wrong_use(mistakes, given(), streams);
  }
  if (check->parsed()) settings.command = Settings::Command::kCheck;
  if (show->parsed()) settings.command = Settings::Command::kShow;
  if (explain->parsed()) settings.command = Settings::Command::kExplain;
  if (rules->parsed()) settings.command = Settings::Command::kRules;
  if (audit->parsed()) settings.command = Settings::Command::kAudit;
  if (simulate->parsed()) settings.command = Settings::Command::kSimulate;
  if (erase->parsed()) settings.command = Settings::Command::kErase;
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
