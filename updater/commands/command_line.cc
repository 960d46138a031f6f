#include "updater/commands/command_line.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <fcap/version.h>

#include "base/clock.h"
#include "base/time_text.h"
#include "command_line/man_page.h"
#include "command_line/usage_mistakes.h"
#include "updater/settings/field_value.h"
#include "updater/settings/fields.h"

namespace fcap::updater {
namespace {

constexpr const char* kDescription =
    "Drains events from Kafka into the ledgers in Redis.\n"
    "Every setting can be given in the configuration file, the environment, or as a flag; see\n"
    "`fcap-updater run --help` and docs/configuration.md.";

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 it could not start or continue, 2 wrong command line or configuration,\n"
    "3 replay or sweep ended by a signal, 4 replay stopped because of Redis' memory, 5 Redis lost\n"
    "data again and again during a replay.";

// The values that settings are given on the command line, by field name.
using FlagValues = std::map<std::string, std::vector<std::string>>;
using Mistakes = std::vector<std::string>;

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
  std::string from_offset;
  std::string to_offset;
  std::string partitions;
  std::string memory;
};

void add_replay(CLI::App& command, ReplayFlags& flags, RawReplay& raw) {
  constexpr const char* kGroup = "What to replay";
  const CLI::Validator time(check_time, "TIME");
  auto* from = command.add_option("--from", raw.from, "From this time, by the broker's timestamps")
                   ->check(time);
  auto* to = command.add_option("--to", raw.to, "Up to, not including, this time")->check(time);
  command
      .add_option("--from-offset", raw.from_offset,
                  "From this offset of each partition, or of single ones, such as 0:1200,3:950; "
                  "the others from their beginning")
      ->check(command_line::not_empty())
      ->excludes(from)
      ->group(kGroup);
  command
      .add_option("--to-offset", raw.to_offset,
                  "Up to, not including, this offset; written like --from-offset")
      ->check(command_line::not_empty())
      ->excludes(to)
      ->group(kGroup);
  command.add_option("--partitions", raw.partitions, "Only these, such as 0,3,4")
      ->check(command_line::not_empty())
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
  command
      .add_flag("--resume", flags.resume, "Continue where an earlier replay of this group stopped")
      ->group(kGroup);
  from->group(kGroup);
  to->group(kGroup);
}

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    parts.push_back(text.substr(0, comma));
    if (comma == text.size()) return parts;
    text.remove_prefix(comma + 1);
  }
}

// "1200" for every partition, or "0:1200,3:950".
OffsetFlag offset_flag(std::string_view flag, std::string_view text, Mistakes& mistakes) {
  OffsetFlag offset;
  if (text.empty()) return offset;
  offset.everywhere = whole_number<std::int64_t>(text);
  if (offset.everywhere) return offset;
  for (const std::string_view part : split_at_commas(text)) {
    const std::size_t colon = std::min(part.find(':'), part.size());
    const auto partition = whole_number<std::int32_t>(part.substr(0, colon));
    const auto at =
        whole_number<std::int64_t>(part.substr(colon == part.size() ? colon : colon + 1));
    if (!partition || !at) {
      mistakes.push_back(fmt::format(
          "{}: \"{}\": expected a whole number, or partitions each with a whole number, "
          "such as 0:1200,3:950",
          flag, text));
      return {};
    }
    offset.of_partition[*partition] = *at;
  }
  return offset;
}

std::vector<std::int32_t> partitions_flag(std::string_view text, Mistakes& mistakes) {
  std::vector<std::int32_t> partitions;
  if (text.empty()) return partitions;
  for (const std::string_view part : split_at_commas(text)) {
    if (const auto partition = whole_number<std::int32_t>(part)) {
      partitions.push_back(*partition);
    } else {
      mistakes.push_back(fmt::format(
          "--partitions: \"{}\": expected a whole number, or several, such as 0,3,4", part));
    }
  }
  return partitions;
}

void finish_replay(const RawReplay& raw, ReplayFlags& flags, Mistakes& mistakes) {
  const Instant now = base::wall_now();
  if (!raw.from.empty()) flags.from_time = parse_time_flag(raw.from, now);
  if (!raw.to.empty()) flags.to_time = parse_time_flag(raw.to, now);
  if (!raw.memory.empty()) flags.redis_bytes_max = parse_bytes(raw.memory).value_or(0);
  flags.from_offset = offset_flag("--from-offset", raw.from_offset, mistakes);
  flags.to_offset = offset_flag("--to-offset", raw.to_offset, mistakes);
  flags.partitions = partitions_flag(raw.partitions, mistakes);
  if (flags.from_time && flags.to_time && *flags.from_time >= *flags.to_time) {
    mistakes.emplace_back("--from, --to: the range ends before it begins");
  }
  if (flags.from_offset.everywhere && flags.to_offset.everywhere &&
      *flags.from_offset.everywhere >= *flags.to_offset.everywhere) {
    mistakes.emplace_back("--from-offset, --to-offset: the range ends before it begins");
  }
}

// Settings are checked where they are loaded, so that all mistakes are reported at once.
void take_unexpected(const CLI::App& app, SettingSources& sources) {
  for (const command_line::Unexpected& argument : command_line::unexpected(app)) {
    const std::string name =
        argument.option.starts_with("--") ? argument.option.substr(2) : std::string();
    const Field* const field = find_field(name);
    if (field != nullptr && std::holds_alternative<SecretKind>(field->kind)) {
      // A secret has no option, because it does not belong on a command line. It is passed on like
      // one, so that load_settings() says so.
      sources.flags.emplace_back(name, argument.text);
    } else if (field != nullptr) {
      sources.mistakes.push_back(argument.option + ": must follow the command");
    } else {
      sources.mistakes.push_back(command_line::describe(argument, app));
    }
  }
}

int wrong_use(const Mistakes& mistakes) {
  fmt::print(stderr, "fcap-updater: {}\nRun with --help for more information.\n",
             fmt::join(mistakes, "\nfcap-updater: "));
  return kExitUsage;
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
    const auto ago = base::parse_length_or_zero(text.substr(1));
    return ago ? std::optional(now - *ago) : std::nullopt;
  }
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error == std::errc{} && end == text.data() + text.size()) {
    // Fewer digits would be seconds, or an offset: too easily meant otherwise.
    constexpr std::int64_t kMillisecondsMin = 100'000'000'000;
    return ms > kMillisecondsMin ? std::optional(instant_from_ms(ms)) : std::nullopt;
  }
  return base::parse_instant(text);
}

std::optional<CommandLine> parse_command_line(int argc, const char* const* argv, int& exit_code) {
  CommandLine line;
  std::string file;
  FlagValues values;
  RawReplay raw;
  CLI::App app(kDescription, "fcap-updater");
  app.footer(kExitCodes);
  app.set_version_flag("--version", "fcap-updater " FCAP_VERSION);
  // A missing subcommand and unexpected arguments are reported below.
  app.require_subcommand(0, 1);
  app.allow_extras();

  auto* run = app.add_subcommand("run", "Count events until SIGTERM or SIGINT");
  auto* replay = app.add_subcommand(
      "replay", "Restore what is missing from the ledgers by reading a part of the topic again");
  auto* sweep = app.add_subcommand("sweep", "Compact all records once, at a limited rate");
  auto* check = app.add_subcommand("check-config",
                                   "Check the configuration, and print what is in "
                                   "effect; touches no server without --connect");
  auto* reference = app.add_subcommand("reference", "Print a reference page");
  for (CLI::App* command : {run, replay, sweep, check}) add_settings(*command, file, values);
  for (CLI::App* command : {replay, sweep, check}) {
    command->add_flag("--json", line.json, "Print one JSON object");
  }
  check->add_flag("--connect", line.connect,
                  "Ask every server whether it is as it must be, and print what to change");
  for (CLI::App* command : {replay, sweep}) {
    command->add_flag("--quiet", line.quiet, "Show no progress on standard error");
  }
  add_replay(*replay, line.replay, raw);
  reference
      ->add_option("page", line.page,
                   "configuration, metrics or sample; man or man-configuration: manual pages")
      ->required()
      ->check(CLI::IsMember({"configuration", "metrics", "sample", "man", "man-configuration"}));

  try {
    app.parse(command_line::arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    exit_code =
        error.get_exit_code() == 0 ? app.exit(error) : wrong_use({command_line::text_of(error)});
    return std::nullopt;
  }
  if (reference->parsed() && line.page == "man") {
    fmt::print("{}", command_line::man_page_of(app, {.section = "8",
                                                     .version = FCAP_VERSION,
                                                     .exit_status = kExitCodes,
                                                     .see_also = "updater.json(5), fcap(1)",
                                                     .left_out_group = "Settings: "}));
    exit_code = kExitOk;
    return std::nullopt;
  }
  if (app.get_subcommands().empty() || reference->parsed()) {
    const Mistakes mistakes = command_line::mistakes_of(app);
    if (!mistakes.empty()) {
      exit_code = wrong_use(mistakes);
      return std::nullopt;
    }
  } else {
    take_unexpected(app, line.sources);
  }
  using Command = CommandLine::Command;
  line.command = replay->parsed()      ? Command::kReplay
                 : sweep->parsed()     ? Command::kSweep
                 : check->parsed()     ? Command::kCheckConfig
                 : reference->parsed() ? Command::kReference
                                       : Command::kRun;
  finish_replay(raw, line.replay, line.sources.mistakes);
  finish_sources(std::move(file), values, line.sources);
  return line;
}

}  // namespace fcap::updater
