#include "harness/part_result.h"

#include <cmath>
#include <fstream>
#include <stdexcept>

namespace fcap::bench {

PartResult::PartResult(std::string part) {
  json_["part"] = std::move(part);
}

void PartResult::number(const std::string& key, double value) {
  if (!std::isfinite(value)) return missing(key, "measured nothing");
  json_[key] = value;
}

void PartResult::missing(const std::string& key, const std::string& reason) {
  json_[key] = nullptr;
  json_["missing"][key] = reason;
}

void PartResult::table(const std::string& id, const std::string& title, const std::string& note,
                       const std::vector<Column>& columns) {
  Json& table = json_["tables"][id];
  table["title"] = title;
  table["note"] = note;
  for (const Column& column : columns) {
    table["columns"].push_back(
        Json{{"key", column.key}, {"title", column.title}, {"digits", column.digits}});
  }
  table["rows"] = Json::array();
}

void PartResult::row(const std::string& table, const std::string& name, const std::string& title,
                     const std::vector<std::pair<std::string, double>>& numbers) {
  Json row = {{"name", name}, {"title", title}};
  for (const auto& [key, value] : numbers) {
    row[key] = std::isfinite(value) ? Json(value) : Json(nullptr);
  }
  json_["tables"][table]["rows"].push_back(std::move(row));
}

void PartResult::write(const std::string& file) const {
  std::ofstream out(file);
  out << json_.dump(2) << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

std::vector<PartResult::Column> throughput_columns() {
  return {{"requests_per_second", "requests/s", 0},
          {"client_cpu_us", "client CPU µs/request", 2},
          {"redis_cpu_us", "Redis CPU µs/request", 2}};
}

std::vector<std::pair<std::string, double>> throughput_numbers(const Measurement& measurement) {
  return {{"requests_per_second", measurement.requests_per_second},
          {"client_cpu_us", measurement.client_cpu_us},
          {"redis_cpu_us", measurement.redis_cpu_us},
          {"failed", static_cast<double>(measurement.failed)}};
}

}  // namespace fcap::bench
