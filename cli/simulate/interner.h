#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <xxhash.h>

namespace fcap::cli {

/// Numbers strings from 0 in the order in which they first come. Compares the strings themselves,
/// never only their hashes.
class Interner {
 public:
  using Hash = std::uint32_t;
  static Hash hash_of(std::string_view name) noexcept {
    return static_cast<Hash>(XXH3_64bits(name.data(), name.size()));
  }

  /// At most 65,535 bytes.
  std::uint32_t number_of(std::string_view name) { return number_of(name, hash_of(name)); }
  std::uint32_t number_of(std::string_view name, Hash hash) {
    if (2 * (ends_.size() + 1) > slots_.size()) grow();
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].number != kEmpty; at = (at + 1) & (slots_.size() - 1)) {
      const NameSlot& slot = slots_[at];
      if (slot.hash == hash && std::string_view(names_).substr(slot.begin, slot.size) == name) {
        return slot.number;
      }
    }
    slots_[at] = {.begin = names_.size() & kBeginMask,
                  .size = name.size() & kSizeMask,
                  .hash = hash,
                  .number = static_cast<std::uint32_t>(ends_.size())};
    names_.append(name);
    ends_.push_back(names_.size());
    return slots_[at].number;
  }

  /// Fetch what number_of() will read of a name soon: first its slot, then, when that has come, the
  /// name that is known under it.
  void fetch_slot(Hash hash) const noexcept {
    __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }
  void fetch_name(Hash hash) const noexcept {
    const NameSlot& slot = slots_[hash & (slots_.size() - 1)];
    __builtin_prefetch(names_.data() + slot.begin);
  }

  [[nodiscard]] std::string_view name(std::uint32_t number) const noexcept {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(names_).substr(begin, ends_[number] - begin);
  }
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }

 private:
  static constexpr std::uint32_t kEmpty = UINT32_MAX;
  static constexpr std::uint64_t kBeginMask = (std::uint64_t{1} << 48U) - 1;
  static constexpr std::uint64_t kSizeMask = 0xFFFF;
  /// With where the name lies, so that a known name costs two reads of memory.
  struct NameSlot {
    std::uint64_t begin : 48 = 0;
    std::uint64_t size : 16 = 0;
    Hash hash = 0;
    std::uint32_t number = kEmpty;
  };

  void grow() {
    std::vector<NameSlot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const NameSlot& slot : old) {
      if (slot.number == kEmpty) continue;
      std::size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].number != kEmpty) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<NameSlot> slots_ = std::vector<NameSlot>(1024);
  std::string names_;
  std::vector<std::size_t> ends_;
};

}  // namespace fcap::cli
