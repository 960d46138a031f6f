#pragma once

#include <atomic>
#include <cstdint>

#include <sys/types.h>

namespace fcap::checker {

/// Tells whether this process is a fork of the one that made the guard: a page that the kernel
/// hands to a child zeroed (MADV_WIPEONFORK), so asking costs one load and needs no atfork handler,
/// which could never be taken back. Where the kernel lacks it, the process id is compared.
///
/// Thread safety: in_child() from any thread.
class ForkGuard {
 public:
  ForkGuard() noexcept;
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  [[nodiscard]] bool in_child() const noexcept {
    if (page_ != nullptr) return page_->load(std::memory_order_relaxed) == 0;
    return pid_changed();
  }

 private:
  [[nodiscard]] bool pid_changed() const noexcept;

  std::atomic<std::uint32_t>* page_ = nullptr;
  pid_t pid_;
};

}  // namespace fcap::checker
