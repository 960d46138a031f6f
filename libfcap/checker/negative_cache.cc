#include "checker/negative_cache.h"

#include <algorithm>
#include <random>

#include <xxhash.h>

namespace fcap::checker {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

std::array<std::uint64_t, 2> hash_of(std::string_view text, std::uint64_t seed) noexcept {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(text.data(), text.size(), seed);
  return {hash.low64, hash.high64};
}

constexpr Instant kForEver = Instant::max();

}  // namespace

NegativeCache::NegativeCache(Limits limits)
    : kept_for_(limits.kept_for),
      seed_(random_seed()),
      buckets_(std::max<std::size_t>(limits.verdicts_max / kBucketSlots, 1)) {}

NegativeCache::CacheSubject NegativeCache::subject(std::string_view user,
                                                   std::span<const std::string_view> segments,
                                                   std::uint64_t generation) const noexcept {
  CacheSubject subject;
  subject.user_ = hash_of(user, seed_);
  // A sum, so that their order does not matter.
  for (const std::string_view segment : segments) {
    const auto hash = hash_of(segment, seed_);
    subject.segments_[0] += hash[0];
    subject.segments_[1] += hash[1];
  }
  subject.generation_ = generation;
  return subject;
}

NegativeCache::CacheKey NegativeCache::key_of(const CacheSubject& subject,
                                              const rules::CandidateKey& candidate) const noexcept {
  const std::array<std::uint64_t, 7> parts{
      subject.user_[0],    subject.user_[1],   subject.segments_[0], subject.segments_[1],
      subject.generation_, candidate.campaign, candidate.creative};
  const XXH128_hash_t hash = XXH3_128bits_withSeed(parts.data(), sizeof parts, seed_);
  return {hash.low64, hash.high64};
}

std::optional<Verdict> NegativeCache::find(const CacheSubject& subject,
                                           const rules::CandidateKey& candidate, Instant now,
                                           Clock::time_point clock_now) noexcept {
  const CacheKey key = key_of(subject, candidate);
  const std::size_t index = key.low % buckets_.size();
  const std::lock_guard lock(mutex_of(index));
  for (const CachedVerdict& slot : buckets_[index]) {
    if (slot.key != key || slot.forgotten_at <= clock_now) continue;
    // At an instant before the evaluation's, a rule may not have been in force yet.
    if (now < slot.since || now >= slot.until) return std::nullopt;
    Verdict verdict;
    verdict.allowed = false;
    verdict.reason = Reason::kCapped;
    verdict.cached = true;
    verdict.rule_id = slot.rule->id;
    verdict.count = slot.count;
    verdict.limit = slot.rule->limit.value_or(0);
    if (slot.until != kForEver) verdict.eligible_at = slot.until;
    return verdict;
  }
  return std::nullopt;
}

void NegativeCache::put(const CacheSubject& subject, const rules::CandidateKey& candidate,
                        Instant now, const rules::CappedUntil& capped,
                        Clock::time_point clock_now) noexcept {
  const CacheKey key = key_of(subject, candidate);
  const std::size_t index = key.low % buckets_.size();
  const std::lock_guard lock(mutex_of(index));
  Bucket& bucket = buckets_[index];
  auto slot = std::find_if(bucket.begin(), bucket.end(),
                           [&](const CachedVerdict& taken) { return taken.key == key; });
  if (slot == bucket.end()) {
    slot = std::min_element(bucket.begin(), bucket.end(),
                            [](const CachedVerdict& a, const CachedVerdict& b) {
                              return a.forgotten_at < b.forgotten_at;
                            });
  }
  if (slot->rule == nullptr) size_.fetch_add(1, std::memory_order_relaxed);
  // A cap is of no use once it may have ended, which is after `left`. So the one that ends first
  // makes room.
  const auto left = capped.until ? std::min(*capped.until - now, kept_for_) : kept_for_;
  *slot = {.key = key,
           .since = now,
           .until = capped.until.value_or(kForEver),
           .forgotten_at = clock_now + left,
           .rule = capped.rule,
           .count = capped.count};
}

}  // namespace fcap::checker
