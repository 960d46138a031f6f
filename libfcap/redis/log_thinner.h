#pragma once

#include <bit>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fcap::redis {

/// Thins out repeated log lines: of each kind, the first, second, fourth … is logged. A kind that
/// has been quiet for ten minutes starts over. Bounded. Free of clocks and I/O.
///
/// Thread safety: none.
class LogThinner {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// How many lines of this kind there were, if this one should be logged; 0: it should not.
  [[nodiscard]] std::uint64_t note(std::string_view text, TimePoint now) {
    const std::string kind = kind_of(text);
    auto found = counts_.find(kind);
    if (found == counts_.end()) {
      if (counts_.size() >= kKindsMax) counts_.clear();
      found = counts_.emplace(kind, Count{}).first;
    }
    Count& count = found->second;
    if (now - count.latest > kQuiet) count.count = 0;
    count.latest = now;
    return std::has_single_bit(++count.count) ? count.count : 0;
  }

 private:
  static constexpr std::size_t kKindsMax = 64;
  static constexpr std::size_t kKindBytesMax = 80;
  static constexpr std::chrono::minutes kQuiet{10};

  struct Count {
    std::uint64_t count = 0;
    TimePoint latest;
  };

  // Slots, ports and times differ between lines that say the same.
  static std::string kind_of(std::string_view text) {
    std::string kind;
    for (const char c : text.substr(0, kKindBytesMax)) {
      if (c < '0' || c > '9') kind += c;
    }
    return kind;
  }

  std::map<std::string, Count> counts_;
};

}  // namespace fcap::redis
