#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/rule.h>
#include <fcap/verdict.h>

#include "checker/stripes.h"
#include "rules/evaluate.h"

namespace fcap::checker {

/// Remembers candidates that are capped whatever else the user may see, until the instant at which
/// that could end. Exact: a verdict is found only for the very user, candidate and segments, under
/// the very rule set and stored segments that it was made with. What it stands on is
/// Evaluator::capped_until(), so fixed windows, lifetime and incomplete records are never in it.
///
/// Keys are 128 bits of XXH3 with a secret seed of this cache's own: two of them are alike once in
/// 10^38 pairs, and nobody outside can choose ids that are. A verdict takes 64 bytes; the memory is
/// taken when the cache is made. A bucket holds four, of which the one that ends first makes room.
///
/// Thread safety: all functions from any thread.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): each mutex has a line of its own
class NegativeCache {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    std::size_t verdicts_max = 0;
    /// The longest that a verdict is kept, whatever the rules say: how long an erasure of the user
    /// may go unnoticed.
    std::chrono::milliseconds kept_for{0};
  };

  /// What all candidates of one check have in common.
  class CacheSubject {
   private:
    friend class NegativeCache;
    std::array<std::uint64_t, 2> user_{};
    std::array<std::uint64_t, 2> segments_{};
    std::uint64_t generation_ = 0;
  };

  /// Throws std::bad_alloc.
  explicit NegativeCache(Limits limits);

  /// `generation` names the rule set and stored segments in use, as in HeldRules.
  [[nodiscard]] CacheSubject subject(std::string_view user,
                                     std::span<const std::string_view> segments,
                                     std::uint64_t generation) const noexcept;

  /// The verdict, while it stands at `now`: eligible_at is the instant until which it is certain.
  /// The rule id is valid as long as the rule set that the generation names.
  [[nodiscard]] std::optional<Verdict> find(const CacheSubject& subject,
                                            const rules::CandidateKey& candidate, Instant now,
                                            Clock::time_point clock_now) noexcept;

  /// Keeps what an evaluation at `now` has found.
  void put(const CacheSubject& subject, const rules::CandidateKey& candidate, Instant now,
           const rules::CappedUntil& capped, Clock::time_point clock_now) noexcept;

  /// How many places are taken; some of those may be over.
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

 private:
  struct CacheKey {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    friend bool operator==(const CacheKey&, const CacheKey&) = default;
  };
  struct alignas(kCacheLineBytes) CachedVerdict {
    CacheKey key;
    Instant since;
    Instant until;                                              ///< max: permanently
    Clock::time_point forgotten_at = Clock::time_point::min();  ///< min: the slot is free
    const Rule* rule = nullptr;
    std::uint32_t count = 0;
  };
  static_assert(sizeof(CachedVerdict) == kCacheLineBytes);
  static constexpr std::size_t kBucketSlots = 4;
  using Bucket = std::array<CachedVerdict, kBucketSlots>;

  [[nodiscard]] CacheKey key_of(const CacheSubject& subject,
                                const rules::CandidateKey& candidate) const noexcept;
  [[nodiscard]] std::mutex& mutex_of(std::size_t bucket) noexcept {
    return mutexes_[bucket % mutexes_.size()].mutex;
  }

  struct alignas(kCacheLineBytes) PaddedMutex {
    std::mutex mutex;
  };

  const std::chrono::milliseconds kept_for_;
  const std::uint64_t seed_;
  std::vector<Bucket> buckets_;  ///< together as many slots as verdicts_max
  std::array<PaddedMutex, 64> mutexes_;
  std::atomic<std::size_t> size_{0};
};

}  // namespace fcap::checker
