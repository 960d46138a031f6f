#include "segments/number_set.h"

#include <algorithm>
#include <utility>

#include "segments/roaring_format.h"

namespace fcap::segments {
namespace {

// With fewer members among 65,536 numbers, a container costs more than so many strays.
constexpr std::size_t kNeighboursMin = 8;

std::uint32_t high_of(std::uint64_t number) noexcept {
  return static_cast<std::uint32_t>(number >> 32U);
}
std::uint32_t low_of(std::uint64_t number) noexcept {
  return static_cast<std::uint32_t>(number);
}

}  // namespace

void NumberSet::add(std::uint64_t number) {
  pending_.push_back(number);
  if (pending_.size() >= settle_at_) {
    settle();
    settle_at_ = std::max(kPendingMin, pending_.size() * 2);
  }
}

Status NumberSet::add_bitmap(std::string_view bytes) {
  Roaring64Reader reader(bytes);
  while (const auto bucket = reader.next()) {
    Roaring bitmap = Roaring::readSafe(bucket->bytes.data(), bucket->bytes.size());
    if (bucket->members >= kNeighboursMin * bucket->containers) {
      collected_[bucket->high] |= bitmap;
      continue;
    }
    for (const std::uint32_t low : bitmap) add(std::uint64_t{bucket->high} << 32U | low);
  }
  return reader.status();
}

// Moves what has neighbours into bitmaps; the rest stays pending, sorted, each number once.
void NumberSet::settle() {
  std::sort(pending_.begin(), pending_.end());
  pending_.erase(std::unique(pending_.begin(), pending_.end()), pending_.end());
  std::vector<std::uint32_t> lows;
  auto kept = pending_.begin();
  for (auto begin = pending_.begin(); begin != pending_.end();) {
    const auto end = std::find_if(begin, pending_.end(), [begin](std::uint64_t number) {
      return number >> 16U != *begin >> 16U;
    });
    // The largest number of all marks a free place among the strays.
    if (static_cast<std::size_t>(end - begin) < kNeighboursMin && *begin >> 16U != ~0ULL >> 16U) {
      kept = std::copy(begin, end, kept);
    } else {
      lows.clear();
      std::transform(begin, end, std::back_inserter(lows), low_of);
      collected_[high_of(*begin)].addMany(lows.size(), lows.data());
    }
    begin = end;
  }
  pending_.erase(kept, pending_.end());
}

std::vector<std::uint64_t> NumberSet::finish() {
  settle();
  highs_.reserve(collected_.size());
  bitmaps_.reserve(collected_.size());
  while (!collected_.empty()) {
    const auto collected = collected_.extract(collected_.begin());
    highs_.push_back(collected.key());
    bitmaps_.emplace_back(collected.mapped());
  }
  std::vector<std::uint64_t> strays = std::exchange(pending_, {});
  // A number that came twice may have gone into a bitmap with neighbours the first time, and have
  // had none the second time.
  strays.erase(std::remove_if(strays.begin(), strays.end(),
                              [this](std::uint64_t number) { return contains(number); }),
               strays.end());
  strays.shrink_to_fit();
  return strays;
}

bool NumberSet::contains(std::uint64_t number) const noexcept {
  const auto high = std::lower_bound(highs_.begin(), highs_.end(), high_of(number));
  if (high == highs_.end() || *high != high_of(number)) return false;
  return bitmaps_[static_cast<std::size_t>(high - highs_.begin())].contains(low_of(number));
}

std::uint64_t NumberSet::size() const noexcept {
  std::uint64_t members = 0;
  for (const PackedBitmap& bitmap : bitmaps_) members += bitmap.size();
  return members;
}

std::size_t NumberSet::bytes() const noexcept {
  std::size_t bytes = highs_.capacity() * sizeof(std::uint32_t);
  for (const PackedBitmap& bitmap : bitmaps_) bytes += sizeof bitmap + bitmap.bytes();
  return bytes;
}

}  // namespace fcap::segments
