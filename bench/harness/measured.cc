#include "harness/measured.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fcap::bench {
namespace {

// Of two values in the middle the lower one.
double median_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void Measured::keep(const std::string& name, const Numbers& numbers) {
  rounds_[name].push_back(numbers);
}

std::vector<double> Measured::values(const std::string& name, const std::string& key) const {
  std::vector<double> found;
  const auto rounds = rounds_.find(name);
  if (rounds == rounds_.end()) return found;
  for (const Numbers& numbers : rounds->second) {
    const auto number = numbers.find(key);
    if (number != numbers.end()) found.push_back(number->second);
  }
  return found;
}

double Measured::median(const std::string& name, const std::string& key) const {
  return median_of(values(name, key));
}

Numbers Measured::medians(const std::string& name) const {
  Numbers result;
  for (const auto& [key, value] : rounds_.at(name).front()) result[key] = median(name, key);
  return result;
}

double Measured::sum(const std::string& name, const std::string& key) const {
  const std::vector<double> all = values(name, key);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

double Measured::ratio(const std::string& name, const std::string& to,
                       const std::string& key) const {
  std::vector<double> ratios = values(name, key);
  const std::vector<double> others = values(to, key);
  ratios.resize(std::min(ratios.size(), others.size()));
  std::transform(ratios.begin(), ratios.end(), others.begin(), ratios.begin(), std::divides<>());
  return median_of(std::move(ratios));
}

}  // namespace fcap::bench
