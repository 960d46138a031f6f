#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/load.h"

namespace fcap::bench {

/// One of those that are compared.
struct Contender {
  std::string name;
  std::function<Measurement()> run;
};

/// The results of contenders that took turns: A, B, C, A, B, C, … so that what disturbs the machine
/// for a while disturbs all of them alike.
class Interleaved {
 public:
  Interleaved(std::vector<Contender> contenders, std::size_t rounds);

  /// Medians over the rounds, each number by itself; failures are summed.
  [[nodiscard]] Measurement median(const std::string& name) const;
  /// The median over the rounds of one's requests per second by another's in the same round.
  [[nodiscard]] double ratio(const std::string& name, const std::string& to) const;

 private:
  [[nodiscard]] const std::vector<Measurement>& of(const std::string& name) const;

  std::vector<Contender> contenders_;
  std::vector<std::vector<Measurement>> results_;
};

/// Of at least one value; the lower one of two in the middle.
double median_of(std::vector<double> values);

}  // namespace fcap::bench
