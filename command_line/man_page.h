#pragma once

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace fcap::command_line {

/// What a page says besides the options.
struct ManPage {
  std::string_view section;      ///< "1"
  std::string_view version;      ///< of the program
  std::string_view exit_status;  ///< sentences
  std::string_view see_also;     ///< "updater.json(5), fcap(1)"
  /// Options of groups that begin so stand on a page of their own; empty: none do.
  std::string_view left_out_group = {};
};

/// The manual page of a program, in roff, from the same descriptions as its --help.
[[nodiscard]] std::string man_page_of(const CLI::App& app, const ManPage& page);

/// Text as it may stand in a line of roff.
[[nodiscard]] std::string roff(std::string_view text);

}  // namespace fcap::command_line
