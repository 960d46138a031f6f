#pragma once

#include <atomic>
#include <set>
#include <string>
#include <string_view>

#include <fcap/checker_options.h>
#include <fcap/verdict.h>

#include "checker/callback_frame.h"
#include "checker/fork_guard.h"

namespace fcap::checker {

/// Says which calls cannot be answered from the history at all. A thread that runs one of the
/// Checker's callbacks has a CallbackFrame for the Checker's Gate.
///
/// Thread safety: all functions from any thread.
class Gate {
 public:
  /// Throws std::bad_alloc.
  explicit Gate(const CheckerOptions& options)
      : null_user_ids_(options.null_user_ids.begin(), options.null_user_ids.end()) {}

  /// To be asked before anything that takes a lock: in a forked child, its holder may be a thread
  /// that is not there.
  [[nodiscard]] bool in_child() const noexcept { return fork_guard_.in_child(); }
  [[nodiscard]] bool inside_callback() const noexcept { return CallbackFrame::inside(this); }

  /// kForked, or kPassed.
  [[nodiscard]] Reason refuse_process() const noexcept {
    return in_child() ? Reason::kForked : Reason::kPassed;
  }
  /// kForked, kReentrant, or kPassed.
  [[nodiscard]] Reason refuse_blocking() const noexcept {
    if (in_child()) return Reason::kForked;
    return inside_callback() ? Reason::kReentrant : Reason::kPassed;
  }
  /// kShutdown, kNoUser, kInvalid, or kPassed. A call that counts itself in (CountedCall) before it
  /// asks is either told kShutdown or waited for by the destructor.
  [[nodiscard]] Reason refuse_user(std::string_view user) const noexcept;

  /// Whether this user's impressions are kept at all.
  [[nodiscard]] bool is_user(std::string_view user) const noexcept;

  void close() noexcept { closing_.store(true, std::memory_order_seq_cst); }
  [[nodiscard]] bool closing() const noexcept { return closing_.load(std::memory_order_seq_cst); }

 private:
  std::set<std::string, std::less<>> null_user_ids_;
  ForkGuard fork_guard_;
  std::atomic<bool> closing_{false};
};

}  // namespace fcap::checker
