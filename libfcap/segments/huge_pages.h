#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include <sys/mman.h>

namespace fcap::segments {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;

[[nodiscard]] constexpr std::size_t whole_huge_pages(std::size_t bytes) noexcept {
  return (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

/// New, zeroed memory. malloc would rather give what it has in small pages already, and those stay
/// small. Throws std::bad_alloc.
[[nodiscard]] inline void* map_huge_pages(std::size_t bytes) {
  const std::size_t size = whole_huge_pages(bytes);
  const std::size_t reserved = size + kHugePageBytes;
  void* const memory =
      ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // Unmaps the bytes before the first boundary and after the end.
  char* const begin = static_cast<char*>(memory);
  const auto before = -reinterpret_cast<std::uintptr_t>(memory) % kHugePageBytes;
  char* const aligned = begin + before;
  if (before > 0) (void)::munmap(begin, before);
  (void)::munmap(aligned + size, reserved - before - size);
  (void)::madvise(aligned, size, MADV_HUGEPAGE);
  return aligned;
}

/// An allocator for large tables that are read all over: asks for huge pages, since otherwise each
/// read also waits for a page table that is in no cache. Where the system gives none, it is like
/// any other.
template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename U>
  HugePageAllocator(const HugePageAllocator<U>& /*other*/) noexcept {}  // NOLINT: implicit

  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = count * sizeof(T);
    return static_cast<T*>(is_large(bytes) ? map_huge_pages(bytes) : ::operator new(bytes));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(T);
    if (is_large(bytes)) {
      (void)::munmap(memory, whole_huge_pages(bytes));
    } else {
      ::operator delete(memory);
    }
  }

  template <typename U>
  bool operator==(const HugePageAllocator<U>& /*other*/) const noexcept {
    return true;
  }

 private:
  static constexpr bool is_large(std::size_t bytes) noexcept { return bytes >= 2 * kHugePageBytes; }
};

}  // namespace fcap::segments
