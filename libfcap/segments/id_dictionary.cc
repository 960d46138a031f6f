#include "segments/id_dictionary.h"

#include <xxhash.h>

namespace fcap::segments {

std::string_view IdDictionary::id(std::uint32_t number) const noexcept {
  const std::uint64_t begin = begins_[number];
  const std::uint64_t end = number + 1 < begins_.size() ? begins_[number + 1] : text_.size();
  return std::string_view(text_).substr(begin, end - begin);
}

/// The slot that holds the id, or the free one where it belongs. Ends: a third of the slots are
/// free.
std::size_t IdDictionary::slot_of(std::string_view wanted) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = XXH3_64bits(wanted.data(), wanted.size()) & mask;
  while (slots_[slot] != kFree && id(slots_[slot]) != wanted) slot = (slot + 1) & mask;
  return slot;
}

void IdDictionary::rehash(std::size_t slots) {
  slots_.assign(slots, kFree);
  for (std::uint32_t number = 0; number < begins_.size(); ++number) {
    slots_[slot_of(id(number))] = number;
  }
}

std::uint32_t IdDictionary::add(std::string_view id) {
  if ((begins_.size() + 1) * 3 > slots_.size() * 2) {
    rehash(slots_.empty() ? 16 : slots_.size() * 2);
  }
  const std::size_t slot = slot_of(id);
  if (slots_[slot] != kFree) return slots_[slot];
  const auto number = static_cast<std::uint32_t>(begins_.size());
  begins_.push_back(text_.size());
  text_.append(id);
  slots_[slot] = number;
  return number;
}

std::optional<std::uint32_t> IdDictionary::find(std::string_view id) const noexcept {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t number = slots_[slot_of(id)];
  if (number == kFree) return std::nullopt;
  return number;
}

void IdDictionary::shrink() {
  text_.shrink_to_fit();
  begins_.shrink_to_fit();
}

}  // namespace fcap::segments
