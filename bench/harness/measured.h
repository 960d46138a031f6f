#pragma once

#include <map>
#include <string>
#include <vector>

namespace fcap::bench {

/// What one run found, by the keys of the table's columns.
using Numbers = std::map<std::string, double>;

/// What all rounds found, by the name of what was measured. What is compared takes turns (A, B, C,
/// A, B, C, …), so that whatever disturbs the machine for a while disturbs all of them alike.
class Measured {
 public:
  void keep(const std::string& name, const Numbers& numbers);
  [[nodiscard]] bool has(const std::string& name) const { return rounds_.contains(name); }

  /// The median over the rounds that have the value and not NaN; NaN if no round does.
  [[nodiscard]] double median(const std::string& name, const std::string& key) const;
  /// The medians of all keys, each by itself.
  [[nodiscard]] Numbers medians(const std::string& name) const;
  [[nodiscard]] double sum(const std::string& name, const std::string& key) const;
  /// The median of the ratios within a round; NaN if no round has both values.
  [[nodiscard]] double ratio(const std::string& name, const std::string& to,
                             const std::string& key) const;

 private:
  [[nodiscard]] std::vector<double> values(const std::string& name, const std::string& key) const;

  std::map<std::string, std::vector<Numbers>> rounds_;
};

}  // namespace fcap::bench
