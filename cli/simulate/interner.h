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
  std::uint32_t number_of(std::string_view name) {
    if (2 * (ends_.size() + 1) > slots_.size()) grow();
    const std::uint64_t hash = XXH3_64bits(name.data(), name.size());
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].number != kEmpty; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].hash == hash && this->name(slots_[at].number) == name) {
        return slots_[at].number;
      }
    }
    slots_[at] = {hash, static_cast<std::uint32_t>(ends_.size())};
    names_.append(name);
    ends_.push_back(names_.size());
    return slots_[at].number;
  }

  [[nodiscard]] std::string_view name(std::uint32_t number) const noexcept {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(names_).substr(begin, ends_[number] - begin);
  }
  [[nodiscard]] std::size_t size() const noexcept { return ends_.size(); }

 private:
  static constexpr std::uint32_t kEmpty = UINT32_MAX;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t number = kEmpty;
  };

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == kEmpty) continue;
      std::size_t at = slot.hash & (slots_.size() - 1);
      while (slots_[at].number != kEmpty) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  std::string names_;
  std::vector<std::size_t> ends_;
};

}  // namespace fcap::cli
