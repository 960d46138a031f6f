#include "updater/pipeline/known_records.h"

#include <algorithm>
#include <bit>

namespace fcap::updater {
namespace {

constexpr std::int64_t kMsPerSecond = 1000;

// Whole seconds, rounded down: never later than it is.
std::uint32_t earlier_s(Instant time) noexcept {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(to_ms(time) / kMsPerSecond, 0, UINT32_MAX));
}

}  // namespace

KnownRecords::KnownRecords(std::size_t records_max)
    : records_(std::bit_ceil(std::max<std::size_t>(records_max, 1))), mask_(records_.size() - 1) {}

std::optional<std::size_t> KnownRecords::length(std::uint64_t hash,
                                                Instant expire_at) const noexcept {
  const KnownRecord& record = at(hash);
  if (record.hash != hash || record.bytes == 0) return std::nullopt;
  if (to_ms(expire_at) > std::int64_t{record.expire_s} * kMsPerSecond) return std::nullopt;
  return record.bytes;
}

void KnownRecords::will_be(std::uint64_t hash, std::size_t bytes) noexcept {
  if (KnownRecord& record = at(hash); record.hash == hash) {
    record.bytes = static_cast<std::uint32_t>(bytes);
  }
}

void KnownRecords::learn(std::uint64_t hash, std::size_t bytes, Instant expire_at) noexcept {
  at(hash) = {hash, static_cast<std::uint32_t>(bytes), earlier_s(expire_at)};
}

void KnownRecords::forget(std::uint64_t hash) noexcept {
  if (KnownRecord& record = at(hash); record.hash == hash) record = {};
}

void KnownRecords::clear() noexcept {
  std::ranges::fill(records_, KnownRecord{});
}

void KnownRecords::prefetch(std::uint64_t hash) const noexcept {
  __builtin_prefetch(&at(hash));
}

}  // namespace fcap::updater
