#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fcap::rules {

/// An open-addressing table from the 48-bit hash of an id to a Value. One cache line per look-up,
/// however many ids there are. Value must be trivially copyable. Hash 0 ("no id") is never found.
/// The hash's low bits are the index as they are: XXH3 has mixed them already.
template <typename Value>
class IdMap {
 public:
  struct IdSlot {
    std::uint64_t hash = 0;  ///< 0: empty
    Value value{};
  };

  /// Makes room for `count` ids and forgets the ones there were.
  void reset(std::size_t count) {
    slots_.assign(slots_for(count), IdSlot{});
    size_ = 0;
  }

  /// Makes room for `count` more ids. References to values are no longer valid.
  void grow(std::size_t count) {
    if (slots_for(size_ + count) <= slots_.size()) return;
    IdMap larger;
    larger.reset(size_ + count);
    for (const IdSlot& slot : slots_) {
      if (slot.hash != 0) larger[slot.hash] = slot.value;
    }
    *this = std::move(larger);
  }

  /// The value of an id, default-made when it is new. At most as many new ones as reset() and
  /// grow() were told.
  Value& operator[](std::uint64_t hash) {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].hash != hash) {
      if (slots_[at].hash == 0) {
        slots_[at].hash = hash;
        ++size_;
        break;
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    return slots_[at].value;
  }

  /// Null when the id is not there. The table always has empty slots, so the walk ends.
  [[nodiscard]] const Value* find(std::uint64_t hash) const noexcept {
    if (hash == 0) return nullptr;
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].hash != hash) {
      if (slots_[at].hash == 0) return nullptr;
      at = (at + 1) & (slots_.size() - 1);
    }
    return &slots_[at].value;
  }

  /// Begins to bring an id's slot into the cache, so that many look-ups wait together.
  void prefetch(std::uint64_t hash) const noexcept {
    __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// In no particular order; those with hash 0 are empty.
  [[nodiscard]] const std::vector<IdSlot>& slots() const noexcept { return slots_; }

 private:
  static std::size_t slots_for(std::size_t count) { return std::bit_ceil(count + count / 2 + 2); }

  std::vector<IdSlot> slots_ = std::vector<IdSlot>(2);
  std::size_t size_ = 0;
};

}  // namespace fcap::rules
