#pragma once

#include <functional>
#include <string>

#include <fcap/explain.h>

/// Explanations for people.
namespace fcap::explanation {

/// How an instant is written.
using InstantText = std::function<std::string(Instant)>;

/// One line per candidate, below a line about the whole.
[[nodiscard]] std::string verdicts_text(const Explanation& explanation, const InstantText& instant);
/// Every rule of every candidate.
[[nodiscard]] std::string rules_text(const Explanation& explanation, const InstantText& instant);

}  // namespace fcap::explanation
