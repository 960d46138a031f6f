#include "micro/allocation_count.h"

#include <cstdlib>
#include <new>

namespace fcap::bench {
namespace {

thread_local std::size_t allocations = 0;

void* counted(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

void* counted(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

std::size_t allocation_count() noexcept {
  return allocations;
}

}  // namespace fcap::bench

// The array and nothrow forms come to these.
void* operator new(std::size_t bytes) {
  return fcap::bench::counted(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return fcap::bench::counted(bytes, alignment);
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
