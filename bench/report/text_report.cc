#include "report/text_report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "report/targets.h"

namespace fcap::bench {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Columns on a terminal: bytes that continue a UTF-8 character take none.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

/// The first column to the left, the others to the right.
std::string aligned(const Rows& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    text += "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      text += i == 0 ? row[i] + space : "   " + space + row[i];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

std::string table_text(const Json& table) {
  Rows rows = {{""}};
  for (const Json& column : table["columns"]) {
    rows.front().push_back(column["title"].get<std::string>());
  }
  for (const Json& row : table["rows"]) {
    rows.push_back({row["title"].get<std::string>()});
    for (const Json& column : table["columns"]) {
      const Json value = row.value(column["key"].get<std::string>(), Json());
      rows.back().push_back(number_text(value, column.value("digits", 2)));
    }
  }
  std::string text = table["title"].get<std::string>() + "\n";
  const std::string note = table.value("note", "");
  if (!note.empty()) text += note + "\n";
  return text + aligned(rows);
}

std::string targets_text(const Json& document) {
  Rows rows = {{"", "measured", "target", ""}};
  for (const Target& target : targets()) {
    const Json& value = document[std::string(target.key)];
    const std::string bound = fmt::format("{} {} {}", target.at_least ? "≥" : "≤",
                                          fmt::format("{:g}", target.bound), target.unit);
    rows.push_back({std::string(target.what), number_text(value, target.digits), bound,
                    !value.is_number()                       ? "not measured"
                    : target.reached_by(value.get<double>()) ? "reached"
                                                             : "missed"});
  }
  std::string text = "Numbers to reach\n" + aligned(rows);
  for (const auto& [key, reason] : document["missing"].items()) {
    text += fmt::format("  {}: {}\n", key, reason.get<std::string>());
  }
  return text;
}

}  // namespace

std::string text_report(const Json& document) {
  std::string text = "fcap bench";
  for (const auto& [key, value] : document["about"].items()) {
    text += fmt::format("\n  {:10} {}", key,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  text += "\n\n";
  for (const auto& [id, table] : document["tables"].items()) text += table_text(table) + "\n";
  return text + targets_text(document);
}

}  // namespace fcap::bench
