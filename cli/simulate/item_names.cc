#include "cli/simulate/item_names.h"

#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/simulate/csv_fields.h"

namespace fcap::cli {
namespace {

Status names_mistake(const std::string& path, std::string_view why) {
  return Status::error(StatusCode::kCorrupt, fmt::format("--names: {}: {}", path, why));
}

}  // namespace

Result<ItemNames> ItemNames::read(const std::string& path) {
  const Result<std::string> read = base::read_file(path);
  if (!read.ok()) return Status::error(read.status().code(), "--names: " + read.status().text());
  const std::string& text = read.value();
  ItemNames names;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') {
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return names_mistake(path, "is not a JSON object");
    for (const auto& [id, name] : json.items()) {
      if (!name.is_string()) return names_mistake(path, "the name of " + id + " is not a string");
      names.names_[id] = name.get<std::string>();
    }
    return names;
  }
  std::istringstream lines(text);
  CsvFields fields;
  std::size_t id = CsvFields::kNone;
  std::size_t name = CsvFields::kNone;
  std::size_t columns = 0;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (++number == 1) {
      fields.read_header(line);
      columns = fields.count();
      id = fields.find({"id", "campaign_id"});
      name = fields.find({"name", "campaign_name"});
      if (id == CsvFields::kNone || name == CsvFields::kNone) {
        return names_mistake(path, "the header line lacks id or name; it is: " + line);
      }
      continue;
    }
    if (line.empty()) continue;
    fields.read(line);
    if (fields.count() != columns) {
      return names_mistake(path, fmt::format("line {}: {} fields, the header has {}", number,
                                             fields.count(), columns));
    }
    names.names_[std::string(fields.at(id))] = fields.at(name);
  }
  if (number == 0) return names_mistake(path, "is empty");
  return names;
}

std::string ItemNames::name(std::string_view id) const {
  const auto found = names_.find(id);
  return found == names_.end() ? std::string() : found->second;
}

std::string ItemNames::label(std::string_view id) const {
  const std::string known = name(id);
  return known.empty() ? std::string(id) : fmt::format("{} ({})", known, id);
}

}  // namespace fcap::cli
