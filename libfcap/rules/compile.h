#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "rules/compiled_rules.h"
#include "rules/shared_spec.h"

namespace fcap::rules {

/// Collects texts up to a bound; says at the end how many more there were.
class Texts {
 public:
  explicit Texts(std::size_t max) : max_(max) {}

  void add(std::string text) {
    if (++count_ <= max_) texts_.push_back(std::move(text));
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::vector<std::string> take() {
    if (count_ > max_) texts_.push_back("and " + std::to_string(count_ - max_) + " more");
    return std::move(texts_);
  }

 private:
  std::size_t max_;
  std::size_t count_ = 0;
  std::vector<std::string> texts_;
};

/// Finds what is wrong with a spec: every mistake, each with the id of its rule or campaign.
void find_mistakes(const SharedSpec& spec, std::chrono::milliseconds retention, Texts& mistakes);

/// Takes out the rules and campaigns that are wrong by themselves and says of each why. Takes out
/// nothing where more rules are wrong than right: then it is not single rules that are wrong.
[[nodiscard]] std::vector<std::string> quarantine(SharedSpec& spec,
                                                  std::chrono::milliseconds retention);

/// Compiles a spec without mistakes, except that zones are looked up here: an unknown one is added
/// to `mistakes`. Keeps views into `spec`.
CompiledRules compile(const SharedSpec& spec, std::chrono::milliseconds retention, Texts& mistakes);

/// Finds what is suspicious but accepted: rules that contradict each other or can never act.
void find_warnings(const SharedSpec& spec, const CompiledRules& compiled, Texts& warnings);

}  // namespace fcap::rules
