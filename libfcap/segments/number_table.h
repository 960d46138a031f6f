#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "segments/huge_pages.h"

namespace fcap::segments {

/// Gives each of many scattered 64-bit numbers a small one: its place in a hash table that holds
/// the numbers themselves, so that a find is exact and touches one place in memory.
class NumberTable {
 public:
  NumberTable() = default;
  /// The numbers must be distinct, none of them 2^64 - 1, and fewer than 2^31.
  explicit NumberTable(const std::vector<std::uint64_t>& numbers) {
    if (numbers.empty()) return;
    std::size_t slots = 16;
    while (numbers.size() * 3 > slots * 2) slots *= 2;
    slots_.assign(slots, kFree);
    for (const std::uint64_t number : numbers) slots_[slot_of(number)] = number;
  }

  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t number) const noexcept {
    if (slots_.empty() || number == kFree) return std::nullopt;
    const std::size_t slot = slot_of(number);
    if (slots_[slot] == kFree) return std::nullopt;
    return static_cast<std::uint32_t>(slot);
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    return slots_.capacity() * sizeof(std::uint64_t);
  }

 private:
  static constexpr std::uint64_t kFree = UINT64_MAX;

  /// The slot that holds the number, or the free one where it belongs. Ends: a third is free.
  [[nodiscard]] std::size_t slot_of(std::uint64_t number) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    // The upper bits of a product depend on all bits of the number.
    std::size_t slot = (number * 0x9E3779B97F4A7C15U >> 32U) & mask;
    while (slots_[slot] != kFree && slots_[slot] != number) slot = (slot + 1) & mask;
    return slot;
  }

  std::vector<std::uint64_t, HugePageAllocator<std::uint64_t>> slots_;
};

}  // namespace fcap::segments
