#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace fcap::bench {

/// What one run found, by the keys of the table's columns.
using Numbers = std::map<std::string, double>;

/// The value that `share` (0 to 1) of the values do not exceed; 0.5 gives the median, of two values
/// in the middle the lower one. NaN if there are no values.
inline double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::ceil(share * static_cast<double>(values.size())) - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// Durations as they were taken, for exact percentiles. Not thread-safe.
class Durations {
 public:
  void reserve(std::size_t count) { us_.reserve(count); }
  void record(std::chrono::nanoseconds duration) {
    us_.push_back(static_cast<double>(duration.count()) / 1e3);
  }
  void add(const Durations& other) { us_.insert(us_.end(), other.us_.begin(), other.us_.end()); }
  [[nodiscard]] std::size_t count() const noexcept { return us_.size(); }
  double percentile_us(double share) { return percentile(us_, share); }

 private:
  std::vector<double> us_;
};

/// What all rounds found, by the name of what was measured. What is compared takes turns (A, B, C,
/// A, B, C, …), so that whatever disturbs the machine for a while disturbs all of them alike.
class Measured {
 public:
  void keep(const std::string& name, const Numbers& numbers) { rounds_[name].push_back(numbers); }
  void forget(const std::string& name) { rounds_.erase(name); }

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
    if (!rounds_.contains(name)) return found;
    for (const Numbers& numbers : rounds_.at(name)) {
      if (numbers.contains(key)) found.push_back(numbers.at(key));
    }
    return found;
  }
  static double median_of(std::vector<double> values) {
    std::erase_if(values, [](double value) { return std::isnan(value); });
    return percentile(values, 0.5);
  }

  std::map<std::string, std::vector<Numbers>> rounds_;
};

}  // namespace fcap::bench
