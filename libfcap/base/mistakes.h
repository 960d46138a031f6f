#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fcap::base {

/// Everything that is wrong with one input, so that it can be said at once. Only the first
/// kShownMax are kept; the others are counted.
class Mistakes {
 public:
  static constexpr std::size_t kShownMax = 100;

  void add(std::string mistake) {
    if (shown_.size() < kShownMax) shown_.push_back(std::move(mistake));
    ++count_;
  }

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  /// All of them in one line.
  [[nodiscard]] std::string one_line() const {
    std::string text;
    for (const std::string& mistake : shown_) text.append(text.empty() ? "" : "; ").append(mistake);
    return text;
  }

  /// One mistake per line, below `heading`.
  [[nodiscard]] std::string text(std::string_view heading) const {
    std::string text(heading);
    for (const std::string& mistake : shown_) text.append("\n  ").append(mistake);
    if (count_ > shown_.size()) {
      text.append("\n  and ").append(std::to_string(count_ - shown_.size())).append(" more");
    }
    return text;
  }

 private:
  std::vector<std::string> shown_;
  std::size_t count_ = 0;
};

}  // namespace fcap::base
