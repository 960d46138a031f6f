#include "report/document.h"

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "report/targets.h"

namespace fcap::bench {
namespace {

bool is_reserved(const std::string& key) {
  return key == "part" || key == "tables" || key == "plots" || key == "missing";
}

void add_once(Json& to, const std::string& key, const Json& value) {
  if (to.contains(key)) throw std::runtime_error("two parts say " + key);
  to[key] = value;
}

/// A part that brings no tables is shown all the same: its objects of numbers as one table.
Json table_of_numbers(const std::string& part, const Json& found) {
  Json rows = Json::array();
  const auto add = [&](const std::string& name, const Json& value) {
    if (value.is_number()) rows.push_back({{"name", name}, {"title", name}, {"value", value}});
  };
  for (const auto& [key, value] : found.items()) {
    if (is_reserved(key)) continue;
    add(key, value);
    if (!value.is_object()) continue;
    for (const auto& [inner, number] : value.items()) add(fmt::format("{}.{}", key, inner), number);
  }
  return {{"title", part},
          {"note", ""},
          {"columns", {{{"key", "value"}, {"title", "value"}, {"digits", 2}}}},
          {"rows", rows}};
}

void add_part(Json& document, const Json& found) {
  const std::string part = found.value("part", "");
  for (const auto& [key, value] : found.items()) {
    if (!is_reserved(key)) add_once(document, key, value);
  }
  for (const char* const kind : {"tables", "plots", "missing"}) {
    if (!found.contains(kind)) continue;
    for (const auto& [key, value] : found[kind].items()) add_once(document[kind], key, value);
  }
  if (!found.contains("tables")) {
    add_once(document["tables"], part, table_of_numbers(part, found));
  }
}

}  // namespace

Json merge_parts(const Json& about, const std::vector<Json>& parts,
                 const std::map<std::string, std::string>& not_run) {
  Json document;
  document["about"] = about;
  for (const Target& target : targets()) document[std::string(target.key)] = nullptr;
  Json found;
  found["missing"] = Json::object();
  found["tables"] = Json::object();
  found["plots"] = Json::object();
  for (const Json& part : parts) add_part(found, part);
  for (const auto& [key, value] : found.items()) document[key] = value;
  for (const Target& target : targets()) {
    const std::string key(target.key);
    if (!document[key].is_null() || document["missing"].contains(key)) continue;
    const auto reason = not_run.find(std::string(target.part));
    document["missing"][key] = reason != not_run.end()
                                   ? fmt::format("the part \"{}\": {}", target.part, reason->second)
                                   : fmt::format("the part \"{}\" did not say", target.part);
  }
  return document;
}

std::string number_text(const Json& number, int digits) {
  if (!number.is_number()) return "–";
  std::string text = fmt::format("{:.{}f}", std::abs(number.get<double>()), digits);
  const std::size_t point = text.find('.');
  for (std::size_t at = point == std::string::npos ? text.size() : point; at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return fmt::format("{}{}", number.get<double>() < 0 ? "-" : "", text);
}

}  // namespace fcap::bench
