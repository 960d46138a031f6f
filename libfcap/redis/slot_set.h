#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fcap::redis {

/// A set of the 16,384 slots of a Redis Cluster.
class SlotSet {
 public:
  static constexpr int kSlots = 16'384;
  /// The slots from `first` to `last`, both included.
  struct Range {
    int first = 0;
    int last = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };

  SlotSet() = default;
  /// The slots from `first` to `last`, both included.
  SlotSet(int first, int last) : ranges_{{first, last}} {}
  [[nodiscard]] static SlotSet all() { return {0, kSlots - 1}; }
  [[nodiscard]] static SlotSet of(const std::bitset<kSlots>& slots);

  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool contains(int slot) const noexcept;
  /// The slot that has `index` lower ones in this set, which has more than that.
  [[nodiscard]] int at(std::size_t index) const noexcept;
  /// As few as possible, ascending.
  [[nodiscard]] const std::vector<Range>& ranges() const noexcept { return ranges_; }
  /// Whether every slot of `other` is in this set.
  [[nodiscard]] bool covers(const SlotSet& other) const { return (other - *this).empty(); }
  [[nodiscard]] bool meets(const SlotSet& other) const { return !(*this & other).empty(); }

  friend SlotSet operator|(const SlotSet& a, const SlotSet& b);
  friend SlotSet operator-(const SlotSet& a, const SlotSet& b);
  friend SlotSet operator&(const SlotSet& a, const SlotSet& b) { return a - (a - b); }
  SlotSet& operator|=(const SlotSet& other) {
    return other.empty() ? *this : *this = *this | other;
  }
  SlotSet& operator-=(const SlotSet& other) {
    return other.empty() ? *this : *this = *this - other;
  }
  SlotSet& operator&=(const SlotSet& other) { return *this = *this & other; }
  friend bool operator==(const SlotSet&, const SlotSet&) = default;

  /// "0-5460,7000": ascending, as few ranges as possible; an empty set is an empty text.
  [[nodiscard]] std::string text() const;
  /// nullopt unless `text` is what text() writes.
  [[nodiscard]] static std::optional<SlotSet> read(std::string_view text);

 private:
  std::vector<Range> ranges_;  // ascending, not touching
};

}  // namespace fcap::redis
