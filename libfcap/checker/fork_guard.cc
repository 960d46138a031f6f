#include "checker/fork_guard.h"

#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace fcap::checker {
namespace {

// Less than a page would do; mapping and wiping work by the page.
constexpr std::size_t kPageBytes = 4096;

}  // namespace

ForkGuard::ForkGuard() noexcept : pid_(::getpid()) {
  void* page =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, kPageBytes, MADV_WIPEONFORK) != 0) {
    ::munmap(page, kPageBytes);
    return;
  }
  page_ = new (page) std::atomic<std::uint32_t>(1);
}

ForkGuard::~ForkGuard() {
  if (page_ != nullptr) ::munmap(page_, kPageBytes);
}

bool ForkGuard::pid_changed() const noexcept {
  return ::getpid() != pid_;
}

}  // namespace fcap::checker
