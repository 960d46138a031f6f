#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace fcap::bench {

/// What one run found, by the keys of the table's columns.
using Numbers = std::map<std::string, double>;

/// What all rounds found, by the name of what was measured. What is compared takes turns (A, B, C,
/// A, B, C, …), so that whatever disturbs the machine for a while disturbs all of them alike.
class Measured {
 public:
  void keep(const std::string& name, const Numbers& numbers) { rounds_[name].push_back(numbers); }
  [[nodiscard]] bool has(const std::string& name) const { return rounds_.contains(name); }

  /// The median over the rounds that have the value and not NaN; NaN if no round does.
  [[nodiscard]] double median(const std::string& name, const std::string& key) const {
    return median_of(values(name, key));
  }
  /// The medians of all keys, each by itself.
  [[nodiscard]] Numbers medians(const std::string& name) const {
    Numbers result;
    for (const auto& [key, value] : rounds_.at(name).front()) result[key] = median(name, key);
    return result;
  }
  [[nodiscard]] double sum(const std::string& name, const std::string& key) const {
    const std::vector<double> all = values(name, key);
    return std::accumulate(all.begin(), all.end(), 0.0);
  }
  /// The median of the ratios within a round; NaN if no round has both values.
  [[nodiscard]] double ratio(const std::string& name, const std::string& to,
                             const std::string& key) const {
    std::vector<double> ratios = values(name, key);
    const std::vector<double> others = values(to, key);
    ratios.resize(std::min(ratios.size(), others.size()));
    std::transform(ratios.begin(), ratios.end(), others.begin(), ratios.begin(), std::divides<>());
    return median_of(std::move(ratios));
  }

 private:
  [[nodiscard]] std::vector<double> values(const std::string& name, const std::string& key) const {
    std::vector<double> found;
    const auto rounds = rounds_.find(name);
    if (rounds == rounds_.end()) return found;
    for (const Numbers& numbers : rounds->second) {
      if (const auto number = numbers.find(key); number != numbers.end()) {
        found.push_back(number->second);
      }
    }
    return found;
  }

  // Of two values in the middle the lower one.
  static double median_of(std::vector<double> values) {
    std::erase_if(values, [](double value) { return std::isnan(value); });
    if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  std::map<std::string, std::vector<Numbers>> rounds_;
};

}  // namespace fcap::bench
