#include "command_line/usage_mistakes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "command_line/nearest_name.h"

namespace fcap::command_line {
namespace {

bool is_option(std::string_view argument) {
  return argument.size() > 1 && argument.front() == '-';
}

void add_options(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    // The help does not offer those without a group either.
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string unknown_command(const std::string& word, const CLI::App& app) {
  const std::vector<std::string> names = command_names(app);
  const std::string nearest = nearest_name(word, names);
  return "\"" + word + "\": unknown command; " +
         (nearest.empty() ? "there are " + listed(names) : "did you mean " + nearest + "?");
}

}  // namespace

std::vector<std::string> arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  bool words_only = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    words_only = words_only || argument == "--";
    const bool empty_value = argument.size() > 3 && argument.starts_with("--") &&
                             argument.find('=') == argument.size() - 1;
    if (!words_only && empty_value) {
      arguments.emplace_back(argument.substr(0, argument.size() - 1));
      arguments.emplace_back();
    } else {
      arguments.emplace_back(argument);
    }
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

std::vector<Unexpected> unexpected(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining(/*recurse=*/true);
  std::vector<Unexpected> found;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (!is_option(rest[i])) {
      found.push_back({.option = {}, .text = rest[i]});
      continue;
    }
    const std::size_t equals = std::min(rest[i].find('='), rest[i].size());
    Unexpected argument{.option = rest[i].substr(0, equals), .text = {}};
    if (equals < rest[i].size()) {
      argument.text = rest[i].substr(equals + 1);
    } else if (i + 1 < rest.size() && !is_option(rest[i + 1])) {
      argument.text = rest[++i];
    }
    found.push_back(std::move(argument));
  }
  return found;
}

std::string describe(const Unexpected& argument, const CLI::App& app) {
  if (argument.option.empty()) return "\"" + argument.text + "\": unexpected argument";
  std::vector<std::string> known;
  add_options(app, known);
  for (const CLI::App* command : app.get_subcommands()) add_options(*command, known);
  // Without the dashes, which are no likeness.
  const std::size_t name = argument.option.find_first_not_of('-');
  const std::string nearest =
      name == std::string::npos ? "" : nearest_name(argument.option.substr(name), known);
  // fallthrough() hands options up to fcap's own, but none down to a command that is yet to come.
  if (!nearest.empty() && argument.option == "--" + nearest) {
    return argument.option + ": must follow the command";
  }
  std::string text = argument.option + ": unknown option";
  if (!nearest.empty()) text += "; did you mean --" + nearest + "?";
  return text;
}

std::vector<std::string> mistakes_of(const CLI::App& app) {
  std::vector<std::string> mistakes;
  const bool has_command = !app.get_subcommands().empty();
  for (const Unexpected& argument : unexpected(app)) {
    if (has_command || !argument.option.empty()) {
      mistakes.push_back(describe(argument, app));
    } else {
      // What follows may well be right for the command that was meant.
      mistakes.push_back(unknown_command(argument.text, app));
      return mistakes;
    }
  }
  if (!has_command && mistakes.empty()) {
    mistakes.push_back("missing command; expected one of " + listed(command_names(app)));
  }
  return mistakes;
}

CLI::Validator not_empty() {
  return {[](const std::string& text) { return std::string(text.empty() ? "needs a value" : ""); },
          ""};
}

std::string text_of(const CLI::ParseError& error) {
  std::string text = error.what();
  const std::size_t colon = text.find(": ");
  if (error.get_name() == "ArgumentMismatch" && text.ends_with(" missing") &&
      colon != std::string::npos) {
    return text.substr(0, colon) + ": needs a value";
  }
  return text;
}

}  // namespace fcap::command_line
