#include "command_line/man_page.h"

#include <algorithm>
#include <vector>

namespace fcap::command_line {
namespace {

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// "--log FILE": without the punctuation that the parser's help has.
std::string head_of(const CLI::Option& option) {
  std::string head;
  for (const std::string& name : option.get_snames()) head += "-" + name + ", ";
  for (const std::string& name : option.get_lnames()) head += "--" + name + ", ";
  if (head.empty()) {
    std::string positional = capitals(option.get_name(/*positional=*/true));
    std::erase_if(positional, [](char c) { return c == '[' || c == ']'; });
    return positional;
  }
  head.resize(head.size() - 2);
  if (option.get_items_expected_max() == 0) return head;  // a flag
  const std::string type = option.get_type_name();
  return head + " " + (type.empty() ? "VALUE" : type);
}

void add_option(const CLI::Option& option, std::string& out) {
  out += ".TP\n.B " + roff(head_of(option)) + "\n" + roff(option.get_description());
  if (!option.get_default_str().empty()) {
    out += "\nWithout: " + roff(option.get_default_str()) + ".";
  }
  if (!option.get_envname().empty()) out += "\nEnvironment: " + roff(option.get_envname()) + ".";
  out += "\n";
}

void add_options(const CLI::App& app, const ManPage& page, std::string& out) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    if (group.empty()) continue;  // not in the help either
    if (!page.left_out_group.empty() && group.starts_with(page.left_out_group)) continue;
    add_option(*option, out);
  }
}

}  // namespace

std::string roff(std::string_view text) {
  std::string out;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) out += "\\&";
    at_line_start = c == '\n';
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string man_page_of(const CLI::App& app, const ManPage& page) {
  const std::string& name = app.get_name();
  const std::string description = app.get_description();
  const auto end_of_first = std::min(description.find_first_of(".\n"), description.size());
  std::string out = ".TH \"" + capitals(name) + "\" \"" + std::string(page.section) + "\" \"\" \"" +
                    "fcap " + std::string(page.version) + "\"\n";
  out += ".SH NAME\n" + roff(name) + " \\- " + roff(description.substr(0, end_of_first)) + "\n";
  out += ".SH SYNOPSIS\n.B " + roff(name) + "\n.RI [ options ] \" command \" [ options ]\n";
  out += ".SH DESCRIPTION\n" + roff(description) + "\n.SH OPTIONS\n";
  add_options(app, page, out);
  out += ".SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    out += ".SS " + roff(command->get_name()) + "\n" + roff(command->get_description()) + "\n";
    add_options(*command, page, out);
  }
  out += ".SH EXIT STATUS\n" + roff(page.exit_status) + "\n";
  out += ".SH SEE ALSO\n" + roff(page.see_also) + "\n";
  return out;
}

}  // namespace fcap::command_line
