#include "failing_new.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace {

constinit thread_local bool failing = false;
constinit thread_local std::ptrdiff_t allowed_left = 0;
constinit thread_local std::ptrdiff_t failures_left = 0;
constinit thread_local bool any_failed = false;
constinit thread_local std::size_t largest = 0;

bool may_allocate() noexcept {
  if (!failing) return true;
  if (allowed_left > 0) {
    --allowed_left;
    return true;
  }
  if (failures_left == 0) return true;
  --failures_left;
  any_failed = true;
  return false;
}

void* allocated(std::size_t bytes, std::size_t alignment) {
  largest = std::max(largest, bytes);
  void* const memory =
      !may_allocate()
          ? nullptr
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

}  // namespace

// In a file of their own, so that no test sees through them.
void* operator new(std::size_t bytes) {
  return allocated(bytes == 0 ? 1 : bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocated(bytes == 0 ? 1 : bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}

namespace fcap::checker_test {

void fail_allocations_of_this_thread(std::ptrdiff_t left, std::ptrdiff_t count) noexcept {
  failing = true;
  allowed_left = left;
  failures_left = count;
  any_failed = false;
}

bool end_of_failing_allocations() noexcept {
  failing = false;
  return any_failed;
}

std::size_t take_largest_allocation() noexcept {
  return std::exchange(largest, 0);
}

}  // namespace fcap::checker_test
