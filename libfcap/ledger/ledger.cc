#include "ledger/ledger.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "ledger/format.h"
#include "ledger/order.h"

namespace fcap::ledger {
namespace {

// What a record can hold of an entry, so that a ledger and its record never differ.
Entry representable(Entry entry) noexcept {
  assert(static_cast<std::uint8_t>(entry.type) <= format::kTypeMask);
  entry.time = format::representable(entry.time);
  entry.campaign &= format::kHashMask;
  entry.creative &= format::kHashMask;
  return entry;
}

}  // namespace

void Ledger::clear() noexcept {
  runs_.clear();
  times_.clear();
  creatives_.clear();
  fingerprints_.clear();
  loose_.clear();
  erased_before_.reset();
  complete_since_.reset();
  unknown_frames_ = 0;
  repeated_ids_ = 0;
  reservations_.clear();
}

void Ledger::merge(const Entry& entry) {
  const Entry held = representable(entry);
  if (erased_before_ && held.time <= *erased_before_) return;
  insert(held);
}

void Ledger::merge(const Ledger& other) {
  if (other.erased_before_) raise_erased_before(*other.erased_before_);
  if (other.complete_since_) raise_complete_since(*other.complete_since_);
  if (this != &other && !other.empty()) {
    for (const Run& run : other.runs_) {
      for (std::uint32_t i = run.begin; i < run.end; ++i) loose_.push_back(other.entry(run, i));
    }
    merge_loose();
  }
  if (this != &other) merge_reservations(other);
  apply_erasure();
}

void Ledger::erase_before(Instant until) {
  raise_erased_before(format::representable(until));
  apply_erasure();
}

void Ledger::drop_after(Instant latest) {
  keep_if([&](std::size_t i) { return times_[i] <= latest; });
  std::erase_if(reservations_, [&](const auto& at) { return at.event.time > latest; });
}

void Ledger::retain(const std::vector<bool>& keep) {
  assert(keep.size() == size());
  keep_if([&](std::size_t i) { return keep[i]; });
}

Entry Ledger::entry(const Run& run, std::uint32_t index) const noexcept {
  assert(run.begin <= index && index < run.end && run.end <= size());
  return {.time = times_[index],
          .campaign = run.campaign,
          .creative = creatives_[index],
          .type = run.type,
          .fingerprint = fingerprints_[index]};
}

const Run* Ledger::find_run(std::uint64_t campaign, EventType type) const noexcept {
  const auto run = std::lower_bound(
      runs_.begin(), runs_.end(), std::tuple(campaign, type),
      [](const Run& candidate, const auto& key) { return run_key(candidate) < key; });
  return run == runs_.end() || run_key(*run) != std::tuple(campaign, type) ? nullptr : &*run;
}

std::optional<std::uint32_t> Ledger::find(std::uint64_t campaign, EventType type,
                                          std::uint32_t fingerprint) const noexcept {
  const Run* const run = find_run(campaign, type);
  if (run == nullptr) return std::nullopt;
  for (std::uint32_t i = run->begin; i < run->end; ++i) {
    if (fingerprints_[i] == fingerprint) return i;
  }
  return std::nullopt;
}

std::optional<Instant> Ledger::newest() const noexcept {
  if (empty()) return std::nullopt;
  Instant newest = times_[runs_.front().end - 1];
  for (const Run& run : runs_) newest = std::max(newest, times_[run.end - 1]);
  return newest;
}

void Ledger::raise_erased_before(Instant until) noexcept {
  if (!erased_before_ || *erased_before_ < until) erased_before_ = until;
}

void Ledger::raise_complete_since(Instant since) noexcept {
  if (!complete_since_ || *complete_since_ < since) complete_since_ = since;
}

void Ledger::apply_erasure() {
  if (!erased_before_) return;
  // What was dropped for size is erased as well, so nothing that could count is missing.
  if (complete_since_ && *complete_since_ <= *erased_before_ + std::chrono::milliseconds{1}) {
    complete_since_.reset();
  }
  std::erase_if(reservations_, [&](const auto& at) { return at.event.time <= *erased_before_; });
  const bool nothing_to_erase = std::all_of(runs_.begin(), runs_.end(), [&](const Run& run) {
    return times_[run.begin] > *erased_before_;
  });
  if (nothing_to_erase) return;
  keep_if([&](std::size_t i) { return times_[i] > *erased_before_; });
}

template <typename Keep>
void Ledger::keep_if(Keep keep) {
  std::uint32_t kept = 0;
  std::size_t kept_runs = 0;
  for (const Run& run : runs_) {
    const std::uint32_t begin = kept;
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      if (!keep(i)) continue;
      times_[kept] = times_[i];
      creatives_[kept] = creatives_[i];
      fingerprints_[kept] = fingerprints_[i];
      ++kept;
    }
    if (kept == begin) continue;
    runs_[kept_runs] = {.campaign = run.campaign, .type = run.type, .begin = begin, .end = kept};
    ++kept_runs;
  }
  runs_.resize(kept_runs);
  times_.resize(kept);
  creatives_.resize(kept);
  fingerprints_.resize(kept);
}

}  // namespace fcap::ledger
