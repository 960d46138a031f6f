#include "updater/command_line.h"

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <fcap/version.h>

#include "config/time_text.h"
#include "updater/settings/field_value.h"
#include "updater/settings/fields.h"

namespace fcap::updater {
namespace {

constexpr const char* kDescription =
    "Drains events from Kafka into the ledgers in Redis.\n"
    "Every setting can be given in the configuration file, the environment, or as a flag; see\n"
    "`fcap-updater run --help` and docs/configuration.md.";

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 it could not start or go on, 2 wrong command line or configuration,\n"
    "3 replay or sweep ended by a signal, 4 replay stopped for Redis' memory.";

/// The values that settings are given on the command line, by field name.
using FlagValues = std::map<std::string, std::vector<std::string>>;

std::string flag_name(const Field& field) {
  const bool secret = std::holds_alternative<SecretKind>(field.kind);
  return fmt::format("{}{}", field.name, secret ? "_file" : "");
}

std::string flag_text(const Field& field, const Settings& defaults) {
  if (std::holds_alternative<SecretKind>(field.kind)) {
    return fmt::format("A file that holds the secret. {}", field.text);
  }
  return fmt::format("{} [{}; {}]", field.text, describe_kind(field),
                     value_as_json(field, defaults).dump());
}

void add_settings(CLI::App& command, std::string& file, FlagValues& values) {
  command.add_option("-c,--config", file, "The configuration file (JSON, comments allowed)")
      ->envname("FCAP_UPDATER_CONFIG");
  const Settings defaults;
  for (const Field& field : fields()) {
    const std::string name = flag_name(field);
    const std::string section(field.name.substr(0, field.name.find('.')));
    command.add_option("--" + name, values[name], flag_text(field, defaults))
        ->allow_extra_args(false)
        ->type_name("")
        ->group("Settings: " + section);
  }
}

std::string check_time(const std::string& text) {
  return parse_time_flag(text, Instant{}) ? std::string()
                                          : "expected a time such as 2026-03-01T00:00:00Z, "
                                            "1700000000000 (ms), now or -24h: " +
                                                text;
}

std::string check_bytes(const std::string& text) {
  return parse_bytes(text) ? std::string() : "expected bytes such as 500000000 or 8GiB: " + text;
}

struct RawReplay {
  std::string from;
  std::string to;
  std::string memory;
};

void add_replay(CLI::App& command, ReplayFlags& flags, RawReplay& raw) {
  constexpr const char* kGroup = "What to replay";
  const CLI::Validator time(check_time, "TIME");
  auto* from =
      command.add_option("--from", raw.from, "From this time of the broker's")->check(time);
  auto* to = command.add_option("--to", raw.to, "Up to, not including, this time")->check(time);
  command.add_option("--from-offset", flags.from_offset, "From this offset of each partition")
      ->check(CLI::NonNegativeNumber)
      ->excludes(from)
      ->group(kGroup);
  command.add_option("--to-offset", flags.to_offset, "Up to, not including, this offset")
      ->check(CLI::NonNegativeNumber)
      ->excludes(to)
      ->group(kGroup);
  command.add_option("--partitions", flags.partitions, "Only these, such as 0,3,4")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  command.add_option("--rate", flags.messages_per_second, "Messages per second; 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->group(kGroup);
  command
      .add_option("--max-memory", raw.memory,
                  "Stop when Redis uses more than this, such as 8GiB; 0: never")
      ->check(CLI::Validator(check_bytes, "BYTES"))
      ->group(kGroup);
  command
      .add_option("--group", flags.group_id,
                  "The replay's consumer group, for --resume [kafka.group_id with \"-replay\"]")
      ->group(kGroup);
  command.add_flag("--resume", flags.resume, "Go on where an earlier replay of this group stopped")
      ->group(kGroup);
  from->group(kGroup);
  to->group(kGroup);
}

void finish_replay(const RawReplay& raw, ReplayFlags& flags) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  if (!raw.from.empty()) flags.from_time = parse_time_flag(raw.from, now);
  if (!raw.to.empty()) flags.to_time = parse_time_flag(raw.to, now);
  if (!raw.memory.empty()) flags.redis_bytes_max = parse_bytes(raw.memory).value_or(0);
}

void finish_sources(std::string file, const FlagValues& values, SettingSources& sources) {
  sources.file_path = std::move(file);
  sources.environment = process_environment();
  // Read once, before any thread is started.
  const char* const credentials =
      std::getenv("CREDENTIALS_DIRECTORY");  // NOLINT(concurrency-mt-unsafe)
  if (credentials != nullptr) sources.credentials_directory = credentials;
  for (const auto& [name, given] : values) {
    for (const std::string& value : given) sources.flags.emplace_back(name, value);
  }
}

}  // namespace

std::optional<Instant> parse_time_flag(std::string_view text, Instant now) {
  if (text == "now") return now;
  if (text.starts_with('-')) {
    const auto ago = parse_duration(text.substr(1));
    return ago ? std::optional(now - *ago) : std::nullopt;
  }
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error == std::errc{} && end == text.data() + text.size()) {
    // Fewer digits would be seconds, or an offset: too easily meant otherwise.
    constexpr std::int64_t kMillisecondsMin = 100'000'000'000;
    return ms > kMillisecondsMin ? std::optional(instant_from_ms(ms)) : std::nullopt;
  }
  return config::parse_instant(text);
}

std::optional<CommandLine> parse_command_line(int argc, const char* const* argv, int& exit_code) {
  CommandLine line;
  std::string file;
  FlagValues values;
  RawReplay raw;
  CLI::App app(kDescription, "fcap-updater");
  app.footer(kExitCodes);
  app.set_version_flag("--version", "fcap-updater " FCAP_VERSION);
  app.require_subcommand(1);

  auto* run = app.add_subcommand("run", "Count events until stopped (SIGTERM, SIGINT)");
  auto* replay =
      app.add_subcommand("replay", "Put back what the ledgers miss of a part of the topic");
  auto* sweep = app.add_subcommand("sweep", "Compact all records once, gently");
  auto* check = app.add_subcommand("check-config",
                                   "Check the configuration, and print what is in "
                                   "effect; touches no server");
  auto* reference = app.add_subcommand("reference", "Print a reference page");
  for (CLI::App* command : {run, replay, sweep, check}) add_settings(*command, file, values);
  for (CLI::App* command : {replay, sweep, check}) {
    command->add_flag("--json", line.json, "Print one JSON object");
  }
  for (CLI::App* command : {replay, sweep}) {
    command->add_flag("--quiet", line.quiet, "No progress on standard error");
  }
  add_replay(*replay, line.replay, raw);
  reference->add_option("page", line.page, "configuration, metrics or sample")
      ->required()
      ->check(CLI::IsMember({"configuration", "metrics", "sample"}));

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? kExitOk : kExitUsage;
    return std::nullopt;
  }
  using Command = CommandLine::Command;
  line.command = replay->parsed()      ? Command::kReplay
                 : sweep->parsed()     ? Command::kSweep
                 : check->parsed()     ? Command::kCheckConfig
                 : reference->parsed() ? Command::kReference
                                       : Command::kRun;
  finish_replay(raw, line.replay);
  finish_sources(std::move(file), values, line.sources);
  return line;
}

}  // namespace fcap::updater
