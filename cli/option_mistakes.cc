#include "cli/option_mistakes.h"

namespace fcap::cli {
namespace {

std::string mistake_in(const QuestionSettings& question, const CliSettings& settings) {
  const AccessSettings& access = settings.access;
  if (!question.input.empty() && question.has_user) {
    return "USER and CANDIDATE cannot be combined with --input, which holds the questions";
  }
  if (question.from_lines() && !settings.at.empty()) {
    return "--at cannot be combined with questions in lines: give each its own \"at\"";
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

std::string mistake_in(const ShowSettings& show, const CliSettings& settings) {
  if (show.has_user && !show.input.empty()) {
    return "USER cannot be combined with --input, which holds the users";
  }
  if (!show.has_user && show.input.empty()) return "needs USER, or --input FILE";
  if (!show.input.empty() && !settings.at.empty()) {
    return "--at cannot be combined with --input: give each line its own \"at\"";
  }
  return {};
}

}  // namespace

std::string mistake_in(const CliSettings& settings) {
  switch (settings.command) {
    case CliSettings::Subcommand::kCheck:
      return mistake_in(settings.check, settings);
    case CliSettings::Subcommand::kExplain:
      return mistake_in(settings.explain, settings);
    case CliSettings::Subcommand::kShow:
      return mistake_in(settings.show, settings);
    case CliSettings::Subcommand::kErase:
      return settings.erase.user.empty() == settings.erase.input.empty()
                 ? "needs either USER or --input FILE"
                 : "";
    case CliSettings::Subcommand::kSimulate:
      return settings.simulate.log_files.empty() && settings.simulate.kafka.brokers.empty()
                 ? "needs --log FILE, or --kafka BROKERS"
                 : "";
    default:
      return {};
  }
}

}  // namespace fcap::cli
