#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/load.h"

namespace fcap::bench {

/// What one part of the benches found out, as the JSON object that bench/run merges: numbers at the
/// top level, "tables" for people. bench/README.md describes it.
class PartResult {
 public:
  using Json = nlohmann::ordered_json;

  struct Column {
    std::string key;
    std::string title;
    int digits = 0;  ///< behind the point
  };
  explicit PartResult(std::string part);

  void number(const std::string& key, double value);
  /// A number that could not be had, and why.
  void missing(const std::string& key, const std::string& reason);

  /// `note` says what was measured. Rows follow by row().
  void table(const std::string& id, const std::string& title, const std::string& note,
             const std::vector<Column>& columns);
  /// `name` is stable, `title` is for people.
  void row(const std::string& table, const std::string& name, const std::string& title,
           const std::vector<std::pair<std::string, double>>& numbers);

  /// Throws std::runtime_error.
  void write(const std::string& file) const;

 private:
  Json json_;
};

/// Columns and row of a Measurement, used by all tables of throughput.
std::vector<PartResult::Column> throughput_columns();
std::vector<std::pair<std::string, double>> throughput_numbers(const Measurement& measurement);

}  // namespace fcap::bench
