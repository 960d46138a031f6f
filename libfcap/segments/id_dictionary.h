#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "segments/huge_pages.h"

namespace fcap::segments {

/// Gives each distinct id a number, 0 upwards, and finds it again. Finding compares the whole id: a
/// hash only says where to look.
///
/// Ids lie one behind the other in blocks, each behind its number and length, so that a find
/// touches two places in memory: the slot, and the id that it points to.
class IdDictionary {
 public:
  /// The id's number, new or known. At most 65,535 bytes, not empty.
  std::uint32_t add(std::string_view id);
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view id) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept;
  /// Gives back what growing has left unused.
  void shrink();

 private:
  /// Where an id lies in the low 40 bits, and the top 24 of its hash: few other ids share them, so
  /// few are looked at in vain.
  using Slot = std::uint64_t;

  [[nodiscard]] const char* record_at(std::uint64_t place) const noexcept;
  [[nodiscard]] static std::string_view id_of(const char* record) noexcept;
  [[nodiscard]] std::size_t slot_of(std::string_view id, std::uint64_t hash) const noexcept;
  std::uint64_t append(std::string_view id);
  void rehash(std::size_t slots);

  using Block = std::vector<char, HugePageAllocator<char>>;

  std::vector<Block> blocks_;  // each filled up to its size
  std::uint32_t size_ = 0;
  std::vector<Slot, HugePageAllocator<Slot>>
      slots_;  // open addressing; a power of two, at most two thirds full
};

}  // namespace fcap::segments
