#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include <fcap/verdict.h>

namespace fcap::checker {

/// Memory for verdicts, taken before a check begins, so that one which runs out of memory later can
/// still answer for every candidate. A few spare ones are for checks that find none at all.
///
/// Thread safety: make() from any thread.
class VerdictRoom {
 public:
  /// Throws std::bad_alloc.
  VerdictRoom();

  /// Leaves `verdicts` empty, with room for `count`. False: there is no memory, and the spare ones
  /// are in use or too small.
  [[nodiscard]] bool make(std::size_t count, std::vector<Verdict>& verdicts) noexcept;

 private:
  static constexpr std::size_t kSpareVerdicts = 1024;

  bool take_spare(std::size_t count, std::vector<Verdict>& verdicts) noexcept;
  void refill() noexcept;

  std::atomic<bool> spare_used_{false};
  std::mutex mutex_;
  std::array<std::vector<Verdict>, 4> spare_;
};

}  // namespace fcap::checker
