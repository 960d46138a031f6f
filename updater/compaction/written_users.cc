#include "updater/compaction/written_users.h"

#include <algorithm>

#include <xxhash.h>

namespace fcap::updater {
namespace {

constexpr std::size_t kBucketsAtFirst = 1024;

std::uint32_t clamp_bytes(std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>(std::min<std::size_t>(bytes, UINT32_MAX));
}

}  // namespace

WrittenUsers::WrittenUsers(const Limits& limits)
    : limits_(limits), buckets_(kBucketsAtFirst, kNone) {
  limits_.users_max = std::min<std::size_t>(limits_.users_max, kNone - 1);
}

bool WrittenUsers::is_due(const WrittenUser& place, std::size_t length_bytes) const noexcept {
  const auto allowed = [this](std::size_t base_bytes) {
    return std::max(static_cast<double>(limits_.tail_bytes_min),
                    limits_.tail_share * static_cast<double>(base_bytes));
  };
  if (place.tail_bytes > allowed(place.base_bytes)) return true;
  // A record that is seen for the first time counts as compact, whatever tail it had. So its length
  // alone is looked at, too.
  return static_cast<double>(length_bytes) >
         static_cast<double>(limits_.record_bytes_max) + allowed(limits_.record_bytes_max);
}

std::uint64_t WrittenUsers::hash_of(std::string_view key) noexcept {
  return XXH3_64bits(key.data(), key.size());
}

void WrittenUsers::prefetch_bucket(std::uint64_t hash) const noexcept {
  __builtin_prefetch(&buckets_[hash & (buckets_.size() - 1)]);
}

void WrittenUsers::prefetch_place(std::uint64_t hash) const noexcept {
  const std::uint32_t index = buckets_[hash & (buckets_.size() - 1)];
  if (index == kNone) return;
  const char* const place = reinterpret_cast<const char*>(&places_[index]);
  __builtin_prefetch(place);
  __builtin_prefetch(place + sizeof(WrittenUser) - 1);
}

void WrittenUsers::prefetch_neighbours(std::uint64_t hash) const noexcept {
  const std::uint32_t index = buckets_[hash & (buckets_.size() - 1)];
  if (index == kNone) return;
  const WrittenUser& place = places_[index];
  if (place.older != kNone) __builtin_prefetch(&places_[place.older].older);
  if (place.newer != kNone) __builtin_prefetch(&places_[place.newer].older);
  if (place.next != kNone) __builtin_prefetch(&places_[place.next].hash);
}

WrittenUsers::NoteOutcome WrittenUsers::note(std::string_view key, std::uint64_t hash,
                                             std::size_t length_after_bytes,
                                             std::size_t appended_bytes, Clock::time_point now) {
  std::uint32_t index = find(hash);
  if (index == kNone) {
    if (size_ >= limits_.users_max) return NoteOutcome::kFull;
    index = add(key, hash);
    places_[index].tail_bytes = 0;
  } else {
    unlink(index);
  }
  link_newest(index);
  WrittenUser& place = places_[index];
  place.last_write = now;
  place.tail_bytes = clamp_bytes(place.tail_bytes + std::min(appended_bytes, length_after_bytes));
  // Shorter than what is remembered: something else has compacted it, and what was appended now is
  // all the tail there can be.
  if (place.tail_bytes > length_after_bytes) place.tail_bytes = clamp_bytes(appended_bytes);
  place.base_bytes = clamp_bytes(length_after_bytes - place.tail_bytes);
  if (!is_due(place, length_after_bytes)) return NoteOutcome::kRemembered;
  remove(index);
  return NoteOutcome::kDue;
}

bool WrittenUsers::remember(std::string_view key, Clock::time_point now) {
  const std::uint64_t hash = hash_of(key);
  if (find(hash) != kNone) return true;
  if (size_ >= limits_.users_max) return false;
  const std::uint32_t index = add(key, hash);
  WrittenUser& place = places_[index];
  place.base_bytes = 0;
  place.tail_bytes = 0;
  place.last_write = now;
  link_newest(index);
  return true;
}

bool WrittenUsers::take_quiet(Clock::time_point until, std::string& key) {
  if (oldest_ == kNone || places_[oldest_].last_write > until) return false;
  key.assign(places_[oldest_].key);
  remove(oldest_);
  return true;
}

std::uint32_t WrittenUsers::find(std::uint64_t hash) const noexcept {
  std::uint32_t index = buckets_[hash & (buckets_.size() - 1)];
  while (index != kNone && places_[index].hash != hash) {
    index = places_[index].next;
  }
  return index;
}

std::uint32_t WrittenUsers::add(std::string_view key, std::uint64_t hash) {
  std::uint32_t index = free_;
  if (index == kNone) {
    index = static_cast<std::uint32_t>(places_.size());
    places_.emplace_back();
    if (places_.size() > buckets_.size()) grow_buckets();
  } else {
    free_ = places_[index].next;
  }
  WrittenUser& place = places_[index];
  place.key.assign(key);
  place.hash = hash;
  place.next = bucket(hash);
  bucket(hash) = index;
  ++size_;
  return index;
}

void WrittenUsers::remove(std::uint32_t index) noexcept {
  std::uint32_t* at = &bucket(places_[index].hash);
  while (*at != index) at = &places_[*at].next;
  *at = places_[index].next;
  unlink(index);
  places_[index].next = free_;
  free_ = index;
  --size_;
}

void WrittenUsers::link_newest(std::uint32_t index) noexcept {
  places_[index].older = newest_;
  places_[index].newer = kNone;
  (newest_ == kNone ? oldest_ : places_[newest_].newer) = index;
  newest_ = index;
}

void WrittenUsers::unlink(std::uint32_t index) noexcept {
  const WrittenUser& place = places_[index];
  (place.older == kNone ? oldest_ : places_[place.older].newer) = place.newer;
  (place.newer == kNone ? newest_ : places_[place.newer].older) = place.older;
}

void WrittenUsers::grow_buckets() {
  buckets_.assign(2 * buckets_.size(), kNone);
  for (std::uint32_t index = oldest_; index != kNone; index = places_[index].newer) {
    places_[index].next = bucket(places_[index].hash);
    bucket(places_[index].hash) = index;
  }
}

}  // namespace fcap::updater
