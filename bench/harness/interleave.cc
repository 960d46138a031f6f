#include "harness/interleave.h"

#include <algorithm>
#include <stdexcept>

namespace fcap::bench {

double median_of(std::vector<double> values) {
  if (values.empty()) throw std::logic_error("the median of nothing");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Interleaved::Interleaved(std::vector<Contender> contenders, std::size_t rounds)
    : contenders_(std::move(contenders)), results_(contenders_.size()) {
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      results_[i].push_back(contenders_[i].run());
    }
  }
}

const std::vector<Measurement>& Interleaved::of(const std::string& name) const {
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (contenders_[i].name == name) return results_[i];
  }
  throw std::logic_error("no contender " + name);
}

Measurement Interleaved::median(const std::string& name) const {
  const auto median = [&](double Measurement::*number) {
    std::vector<double> values;
    for (const Measurement& each : of(name)) values.push_back(each.*number);
    return median_of(std::move(values));
  };
  Measurement result{.requests_per_second = median(&Measurement::requests_per_second),
                     .client_cpu_us = median(&Measurement::client_cpu_us),
                     .redis_cpu_us = median(&Measurement::redis_cpu_us)};
  for (const Measurement& each : of(name)) result.failed += each.failed;
  return result;
}

double Interleaved::ratio(const std::string& name, const std::string& to) const {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < of(name).size(); ++round) {
    ratios.push_back(of(name)[round].requests_per_second / of(to)[round].requests_per_second);
  }
  return median_of(std::move(ratios));
}

}  // namespace fcap::bench
