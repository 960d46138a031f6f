#include "redis/slot_set.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace fcap::redis {
namespace {

bool read_slot(std::string_view text, int& slot) noexcept {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, slot);
  return error == std::errc{} && at == end && slot >= 0 && slot < SlotSet::kSlots;
}

}  // namespace

SlotSet SlotSet::of(const std::bitset<kSlots>& slots) {
  SlotSet set;
  for (int slot = 0; slot < kSlots; ++slot) {
    if (!slots.test(static_cast<std::size_t>(slot))) continue;
    if (!set.ranges_.empty() && set.ranges_.back().last == slot - 1) {
      set.ranges_.back().last = slot;
    } else {
      set.ranges_.push_back({slot, slot});
    }
  }
  return set;
}

std::size_t SlotSet::size() const noexcept {
  std::size_t count = 0;
  for (const Range& range : ranges_)
    count += static_cast<std::size_t>(range.last - range.first) + 1;
  return count;
}

bool SlotSet::contains(int slot) const noexcept {
  const auto after = std::ranges::upper_bound(ranges_, slot, {}, &Range::first);
  return after != ranges_.begin() && std::prev(after)->last >= slot;
}

int SlotSet::at(std::size_t index) const noexcept {
  for (const Range& range : ranges_) {
    const auto size = static_cast<std::size_t>(range.last - range.first) + 1;
    if (index < size) return range.first + static_cast<int>(index);
    index -= size;
  }
  return kSlots;
}

SlotSet operator|(const SlotSet& a, const SlotSet& b) {
  std::vector<SlotSet::Range> all;
  all.reserve(a.ranges_.size() + b.ranges_.size());
  std::ranges::merge(a.ranges_, b.ranges_, std::back_inserter(all), {}, &SlotSet::Range::first,
                     &SlotSet::Range::first);
  SlotSet sum;
  for (const SlotSet::Range& range : all) {
    if (!sum.ranges_.empty() && range.first <= sum.ranges_.back().last + 1) {
      sum.ranges_.back().last = std::max(sum.ranges_.back().last, range.last);
    } else {
      sum.ranges_.push_back(range);
    }
  }
  return sum;
}

SlotSet operator-(const SlotSet& a, const SlotSet& b) {
  SlotSet left;
  auto cut = b.ranges_.begin();
  for (SlotSet::Range range : a.ranges_) {
    while (cut != b.ranges_.end() && cut->last < range.first) ++cut;
    for (auto at = cut; at != b.ranges_.end() && at->first <= range.last; ++at) {
      if (at->first > range.first) left.ranges_.push_back({range.first, at->first - 1});
      range.first = at->last + 1;
    }
    if (range.first <= range.last) left.ranges_.push_back(range);
  }
  return left;
}

std::string SlotSet::text() const {
  std::string text;
  for (const Range& range : ranges_) {
    if (!text.empty()) text += ',';
    text += std::to_string(range.first);
    if (range.last != range.first) text.append("-").append(std::to_string(range.last));
  }
  return text;
}

std::optional<SlotSet> SlotSet::read(std::string_view text) {
  SlotSet set;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t dash = part.find('-');
    Range range;
    if (!read_slot(part.substr(0, dash), range.first)) return std::nullopt;
    range.last = range.first;
    if (dash != part.npos && !read_slot(part.substr(dash + 1), range.last)) return std::nullopt;
    if (range.last < range.first) return std::nullopt;
    if (!set.ranges_.empty() && range.first <= set.ranges_.back().last + 1) return std::nullopt;
    set.ranges_.push_back(range);
  }
  if (set.text() != text) return std::nullopt;
  return set;
}

}  // namespace fcap::redis
