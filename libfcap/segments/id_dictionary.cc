#include "segments/id_dictionary.h"

#include <cstring>

#include <xxhash.h>

namespace fcap::segments {
namespace {

// A record: the id's number, its length, its bytes.
constexpr std::size_t kNumberBytes = sizeof(std::uint32_t);
constexpr std::size_t kHeadBytes = kNumberBytes + sizeof(std::uint16_t);
constexpr unsigned kBlockBits = 23;
constexpr std::size_t kBlockBytes = std::size_t{1} << kBlockBits;
constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << 40U) - 1;
constexpr std::uint64_t kFree = UINT64_MAX;

template <typename T>
T read_at(const char* bytes) noexcept {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint64_t hash_of(std::string_view id) noexcept {
  return XXH3_64bits(id.data(), id.size());
}

}  // namespace

const char* IdDictionary::record_at(std::uint64_t place) const noexcept {
  return blocks_[place >> kBlockBits].data() + (place & (kBlockBytes - 1));
}

std::string_view IdDictionary::id_of(const char* record) noexcept {
  return {record + kHeadBytes, read_at<std::uint16_t>(record + kNumberBytes)};
}

// The slot that holds the id, or the free one where it belongs. Ends: a third of the slots are
// free.
std::size_t IdDictionary::slot_of(std::string_view id, std::uint64_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const Slot held = slots_[slot];
    if (held == kFree) return slot;
    const bool tags_agree = ((held ^ hash) & ~kPlaceMask) == 0;
    if (tags_agree && id_of(record_at(held & kPlaceMask)) == id) return slot;
  }
}

void IdDictionary::rehash(std::size_t slots) {
  slots_.assign(slots, kFree);
  const std::size_t mask = slots - 1;
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    const Block& bytes = blocks_[block];
    for (std::size_t at = 0; at < bytes.size();) {
      const std::string_view id = id_of(bytes.data() + at);
      const std::uint64_t hash = hash_of(id);
      std::size_t slot = hash & mask;
      while (slots_[slot] != kFree) slot = (slot + 1) & mask;
      slots_[slot] = (hash & ~kPlaceMask) | (std::uint64_t{block} << kBlockBits | at);
      at += kHeadBytes + id.size();
    }
  }
}

std::uint64_t IdDictionary::append(std::string_view id) {
  const std::size_t bytes = kHeadBytes + id.size();
  // The first block grows, so that small dictionaries stay small; later blocks have their full
  // size from the start.
  if (blocks_.empty() || blocks_.back().size() + bytes > kBlockBytes) {
    blocks_.emplace_back();
    if (blocks_.size() > 1) blocks_.back().reserve(kBlockBytes);
  }
  Block& block = blocks_.back();
  const std::size_t at = block.size();
  block.resize(at + bytes);
  const auto length = static_cast<std::uint16_t>(id.size());
  std::memcpy(block.data() + at, &size_, kNumberBytes);
  std::memcpy(block.data() + at + kNumberBytes, &length, sizeof length);
  std::memcpy(block.data() + at + kHeadBytes, id.data(), id.size());
  return (blocks_.size() - 1) << kBlockBits | at;
}

std::uint32_t IdDictionary::add(std::string_view id) {
  if ((std::size_t{size_} + 1) * 3 > slots_.size() * 2) {
    rehash(slots_.empty() ? 16 : slots_.size() * 2);
  }
  const std::uint64_t hash = hash_of(id);
  const std::size_t slot = slot_of(id, hash);
  if (slots_[slot] != kFree) {
    return read_at<std::uint32_t>(record_at(slots_[slot] & kPlaceMask));
  }
  slots_[slot] = (hash & ~kPlaceMask) | append(id);
  return size_++;
}

std::optional<std::uint32_t> IdDictionary::find(std::string_view id) const noexcept {
  if (slots_.empty()) return std::nullopt;
  const Slot held = slots_[slot_of(id, hash_of(id))];
  if (held == kFree) return std::nullopt;
  return read_at<std::uint32_t>(record_at(held & kPlaceMask));
}

std::size_t IdDictionary::bytes() const noexcept {
  std::size_t bytes = slots_.capacity() * sizeof(Slot);
  for (const Block& block : blocks_) bytes += sizeof(Block) + block.capacity();
  return bytes;
}

void IdDictionary::shrink() {
  if (blocks_.size() == 1) blocks_.back().shrink_to_fit();
}

}  // namespace fcap::segments
