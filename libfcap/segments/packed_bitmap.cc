#include "segments/packed_bitmap.h"

#include <algorithm>

namespace fcap::segments {
namespace {

constexpr std::size_t kBitsetWords = 4096;
constexpr std::size_t kWordBits = 16;
// Members of an array that is spread evenly lie this close to where they would lie if it were
// perfectly even: for 150 members more than twice the standard deviation, at most sqrt(150) / 2.
constexpr std::size_t kWindow = 16;

std::uint16_t high_of(std::uint32_t number) noexcept {
  return static_cast<std::uint16_t>(number >> 16U);
}
std::uint16_t low_of(std::uint32_t number) noexcept {
  return static_cast<std::uint16_t>(number);
}

// How many of the sorted numbers are at most `low`, if at least one is; else 1. Without branches
// that depend on the numbers.
std::size_t count_up_to(const std::uint16_t* numbers, std::size_t count,
                        std::uint16_t low) noexcept {
  const std::uint16_t* begin = numbers;
  while (count > 1) {
    const std::size_t half = count / 2;
    begin = begin[half] <= low ? begin + half : begin;
    count -= half;
  }
  return static_cast<std::size_t>(begin - numbers) + 1;
}

bool array_has(const std::uint16_t* members, std::size_t count, std::uint16_t low) noexcept {
  const std::size_t guess = count * low >> kWordBits;
  std::size_t begin = guess > kWindow ? guess - kWindow : 0;
  std::size_t end = std::min(guess + kWindow, count);
  const bool in_window = (begin == 0 || members[begin] <= low) &&  //
                         (end == count || low < members[end]);
  if (!in_window) {
    begin = 0;
    end = count;
  }
  return members[begin + count_up_to(members + begin, end - begin, low) - 1] == low;
}

bool bitset_has(const std::uint16_t* bits, std::uint16_t low) noexcept {
  return (static_cast<unsigned>(bits[low / kWordBits]) >> low % kWordBits & 1U) != 0;
}

bool runs_have(const std::uint16_t* firsts, std::size_t count, std::uint16_t low) noexcept {
  const std::size_t run = count_up_to(firsts, count, low) - 1;
  return firsts[run] <= low && low <= firsts[count + run];
}

}  // namespace

PackedBitmap::PackedBitmap(const Roaring& bitmap) {
  std::vector<std::uint16_t> members;
  std::uint16_t key = 0;
  for (const std::uint32_t number : bitmap) {
    if (high_of(number) != key) {
      append(key, members);
      members.clear();
      key = high_of(number);
    }
    members.push_back(low_of(number));
  }
  append(key, members);
  containers_.shrink_to_fit();
  words_.shrink_to_fit();
}

// In the kind of container that is the smallest.
void PackedBitmap::append(std::uint16_t key, const std::vector<std::uint16_t>& members) {
  if (members.empty()) return;
  size_ += members.size();
  std::vector<std::uint16_t> firsts;
  std::vector<std::uint16_t> lasts;
  for (const std::uint16_t member : members) {
    if (lasts.empty() || member != lasts.back() + 1) {
      firsts.push_back(member);
      lasts.push_back(member);
    }
    lasts.back() = member;
  }
  Container container{
      .place = static_cast<std::uint32_t>(words_.size()), .key = key, .kind = {}, .count = 0};
  if (2 * firsts.size() < std::min(members.size(), kBitsetWords)) {
    container.kind = Kind::kRuns;
    container.count = firsts.size() & 0x3FFFU;
    words_.insert(words_.end(), firsts.begin(), firsts.end());
    words_.insert(words_.end(), lasts.begin(), lasts.end());
  } else if (members.size() <= kBitsetWords) {
    container.kind = Kind::kArray;
    container.count = members.size() & 0x3FFFU;
    words_.insert(words_.end(), members.begin(), members.end());
  } else {
    container.kind = Kind::kBitset;
    words_.resize(words_.size() + kBitsetWords);
    std::uint16_t* const bits = words_.data() + container.place;
    for (const std::uint16_t member : members) {
      const unsigned bit = 1U << member % kWordBits;
      bits[member / kWordBits] = static_cast<std::uint16_t>(bits[member / kWordBits] | bit);
    }
  }
  containers_.push_back(container);
}

bool PackedBitmap::contains(std::uint32_t number) const noexcept {
  if (containers_.empty() || high_of(number) < containers_.front().key) return false;
  // Where it is if no key between the first one and this one is missing.
  const std::size_t distance = high_of(number) - containers_.front().key;
  auto found =
      containers_.begin() + static_cast<std::ptrdiff_t>(std::min(distance, containers_.size() - 1));
  if (found->key != high_of(number)) {
    found = std::lower_bound(
        containers_.begin(), found, high_of(number),
        [](const Container& container, std::uint16_t key) { return container.key < key; });
    if (found->key != high_of(number)) return false;
  }
  const std::uint16_t* const words = words_.data() + found->place;
  switch (found->kind) {
    case Kind::kBitset:
      return bitset_has(words, low_of(number));
    case Kind::kRuns:
      return runs_have(words, found->count, low_of(number));
    case Kind::kArray:
      break;
  }
  return array_has(words, found->count, low_of(number));
}

std::size_t PackedBitmap::bytes() const noexcept {
  return containers_.capacity() * sizeof(Container) + words_.capacity() * sizeof(std::uint16_t);
}

}  // namespace fcap::segments
