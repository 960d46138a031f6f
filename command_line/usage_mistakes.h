#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

/// What is wrong with a command line, said so that it can be put right. CLI11 ends at the first
/// thing it does not know and names no likely spelling; with allow_extras() it leaves that to
/// these.
namespace fcap::command_line {

/// The arguments in the order that App::parse() takes them in. An empty value, "--name=", is passed
/// on as one; CLI11 would take the next argument for it.
[[nodiscard]] std::vector<std::string> arguments(int argc, const char* const* argv);

/// An argument that no command and no option took.
struct Unexpected {
  std::string option;  ///< "--nonsense"; empty: it is a word by itself
  std::string text;    ///< the word, or the option's value as far as one can tell
};
[[nodiscard]] std::vector<Unexpected> unexpected(const CLI::App& app);

/// "--topik: unknown option; did you mean --topic?"
[[nodiscard]] std::string describe(const Unexpected& argument, const CLI::App& app);

/// Everything unexpected, described; where there is no command, what is known of that.
[[nodiscard]] std::vector<std::string> mistakes_of(const CLI::App& app);

/// For options that an empty value would silently switch off.
[[nodiscard]] CLI::Validator not_empty();

/// CLI11's text, except where it speaks of types.
[[nodiscard]] std::string text_of(const CLI::ParseError& error);

}  // namespace fcap::command_line
