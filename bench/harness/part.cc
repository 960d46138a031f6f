#include "harness/part.h"

#include <fstream>

namespace fcap::bench {
namespace {

using Json = nlohmann::ordered_json;

double median_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return percentile(values, 0.5);
}

}  // namespace

void PartResult::number(const std::string& key, double value) {
  if (!std::isfinite(value)) return missing(key, "measured nothing");
  json_[key] = value;
}

void PartResult::missing(const std::string& key, const std::string& reason) {
  json_[key] = nullptr;
  json_["missing"].emplace(key, reason);
}

void PartResult::table(const std::string& id, const std::string& title, const std::string& note,
                       const std::vector<Column>& columns) {
  table_ = id;
  Json& table = json_["tables"][id];
  table = {{"title", title}, {"note", note}};
  for (const auto& [key, heading, digits] : columns) {
    table["columns"].push_back(Json{{"key", key}, {"title", heading}, {"digits", digits}});
  }
  table["rows"] = Json::array();
}

void PartResult::row(const std::string& table, const std::string& name, const std::string& title,
                     const Numbers& numbers) {
  Json row = {{"name", name}, {"title", title}};
  // What is not finite is written as null.
  for (const auto& [key, value] : numbers) row[key] = value;
  json_["tables"][table]["rows"].push_back(std::move(row));
}

void PartResult::write(const std::string& file) const {
  std::ofstream out(file);
  out << json_.dump(2) << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

std::vector<PartResult::Column> throughput_columns(std::vector<PartResult::Column> more) {
  more.insert(more.begin(), {{"requests_per_second", "requests/s", 0},
                             {"client_cpu_us", "client CPU µs/request", 2},
                             {"redis_cpu_us", "Redis CPU µs/request", 2}});
  return more;
}

void RedisPart::take_turns() {
  for (const ComparedTurn& turn : turns_) rounds_.erase(turn.name);  // another table's
  for (std::size_t round = 0; round < flags_.rounds; ++round) {
    for (const ComparedTurn& turn : turns_) {
      Numbers found = turn.measure();
      if (found.contains("failed") && found.at("failed") > 0) {
        throw std::runtime_error(turn.name + ": requests failed");
      }
      rounds_[turn.name].push_back(std::move(found));
    }
  }
  for (const ComparedTurn& turn : turns_) {
    Numbers medians = rounds_.at(turn.name).front();
    for (auto& [column, value] : medians) value = median(turn.name, column);
    result_.row(turn.table, turn.name, turn.title, medians);
  }
  turns_.clear();
}

void RedisPart::ratio(const std::string& key, const std::string& name, const std::string& to,
                      const std::string& column) {
  std::vector<double> ratios = found(name, column);
  const std::vector<double> others = found(to, column);
  ratios.resize(std::min(ratios.size(), others.size()));
  std::ranges::transform(ratios, others, ratios.begin(), std::divides<>());
  result_.number(key, median_of(std::move(ratios)));
}

double RedisPart::median(const std::string& name, const std::string& column) const {
  return median_of(found(name, column));
}

std::vector<double> RedisPart::found(const std::string& name, const std::string& column) const {
  std::vector<double> values;
  if (!rounds_.contains(name)) return values;
  for (const Numbers& numbers : rounds_.at(name)) {
    if (numbers.contains(column)) values.push_back(numbers.at(column));
  }
  return values;
}

}  // namespace fcap::bench
