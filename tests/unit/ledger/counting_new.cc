#include "unit/ledger/counting_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> count{0};
std::atomic<std::size_t> sum_bytes{0};
std::atomic<std::ptrdiff_t> allowed{-1};

bool may_allocate() noexcept {
  return allowed.load() < 0 || (allowed.load() > 0 && allowed.fetch_sub(1) > 0);
}

}  // namespace

// In a file of their own, so that no test sees through them.
void* operator new(std::size_t bytes) {
  ++count;
  sum_bytes += bytes;
  void* const memory = may_allocate() ? std::malloc(bytes == 0 ? 1 : bytes) : nullptr;
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace fcap::ledger::testing {

std::size_t allocations() noexcept {
  return count;
}
std::size_t allocated_bytes() noexcept {
  return sum_bytes;
}
void fail_allocations_after(std::ptrdiff_t left) noexcept {
  allowed = left;
}

}  // namespace fcap::ledger::testing
