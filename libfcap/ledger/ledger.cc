#include "ledger/ledger.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "ledger/format.h"

namespace fcap::ledger {
namespace {

std::tuple<std::uint64_t, EventType> run_key(const Run& run) noexcept {
  return {run.campaign, run.type};
}

std::tuple<std::uint64_t, EventType> run_key(const Entry& entry) noexcept {
  return {entry.campaign, entry.type};
}

/// What a record can hold of an entry, so that a ledger and its record never differ.
Entry representable(Entry entry) noexcept {
  assert(static_cast<std::uint8_t>(entry.type) <= format::kTypeMask);
  entry.time = format::representable(entry.time);
  entry.campaign &= format::kHashMask;
  entry.creative &= format::kHashMask;
  return entry;
}

bool identity_first_then_winner(const Entry& a, const Entry& b) noexcept {
  return std::tuple(a.campaign, a.type, a.fingerprint, b.time, b.creative) <
         std::tuple(b.campaign, b.type, b.fingerprint, a.time, a.creative);
}

bool same_identity(const Entry& a, const Entry& b) noexcept {
  return a.fingerprint == b.fingerprint && a.campaign == b.campaign && a.type == b.type;
}

bool column_order(const Entry& a, const Entry& b) noexcept {
  return std::tuple(a.campaign, a.type, a.time, a.fingerprint) <
         std::tuple(b.campaign, b.type, b.time, b.fingerprint);
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
    gather_into_loose();
    for (const Run& run : other.runs_) {
      for (std::uint32_t i = run.begin; i < run.end; ++i) loose_.push_back(other.entry(run, i));
    }
    rebuild_from_loose();
  }
  apply_erasure();
}

void Ledger::erase_before(Instant until) {
  raise_erased_before(format::representable(until));
  apply_erasure();
}

void Ledger::drop_after(Instant latest) {
  keep_if([&](std::size_t i) { return times_[i] <= latest; });
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
  const bool nothing_to_erase = std::all_of(runs_.begin(), runs_.end(), [&](const Run& run) {
    return times_[run.begin] > *erased_before_;
  });
  if (nothing_to_erase) return;
  keep_if([&](std::size_t i) { return times_[i] > *erased_before_; });
}

void Ledger::insert(const Entry& entry) {
  auto run = std::lower_bound(
      runs_.begin(), runs_.end(), run_key(entry),
      [](const Run& candidate, const auto& key) { return run_key(candidate) < key; });
  if (run == runs_.end() || run_key(*run) != run_key(entry)) {
    const std::uint32_t begin =
        run == runs_.end() ? static_cast<std::uint32_t>(size()) : run->begin;
    run = runs_.insert(
        run, {.campaign = entry.campaign, .type = entry.type, .begin = begin, .end = begin});
  }
  std::uint32_t grown_by = 1;
  for (std::uint32_t i = run->begin; i < run->end; ++i) {
    if (fingerprints_[i] != entry.fingerprint) continue;
    if (std::tie(times_[i], creatives_[i]) >= std::tie(entry.time, entry.creative)) return;
    erase_column_values(i);
    grown_by = 0;
    break;
  }
  // One less while the place of a replaced entry is vacant.
  std::uint32_t position = run->end - (1 - grown_by);
  while (position > run->begin && std::tie(times_[position - 1], fingerprints_[position - 1]) >
                                      std::tie(entry.time, entry.fingerprint)) {
    --position;
  }
  insert_column_values(position, entry);
  if (grown_by == 0) return;
  ++run->end;
  for (++run; run != runs_.end(); ++run) {
    ++run->begin;
    ++run->end;
  }
}

void Ledger::insert_column_values(std::size_t position, const Entry& entry) {
  const auto offset = static_cast<std::ptrdiff_t>(position);
  times_.insert(times_.begin() + offset, entry.time);
  creatives_.insert(creatives_.begin() + offset, entry.creative);
  fingerprints_.insert(fingerprints_.begin() + offset, entry.fingerprint);
}

void Ledger::erase_column_values(std::size_t position) {
  const auto offset = static_cast<std::ptrdiff_t>(position);
  times_.erase(times_.begin() + offset);
  creatives_.erase(creatives_.begin() + offset);
  fingerprints_.erase(fingerprints_.begin() + offset);
}

void Ledger::gather_into_loose() {
  for (const Run& run : runs_) {
    for (std::uint32_t i = run.begin; i < run.end; ++i) loose_.push_back(entry(run, i));
  }
  runs_.clear();
  times_.clear();
  creatives_.clear();
  fingerprints_.clear();
}

void Ledger::rebuild_from_loose() {
  assert(runs_.empty() && times_.empty());
  std::sort(loose_.begin(), loose_.end(), identity_first_then_winner);
  loose_.erase(std::unique(loose_.begin(), loose_.end(), same_identity), loose_.end());
  std::sort(loose_.begin(), loose_.end(), column_order);
  for (const Entry& entry : loose_) {
    const auto position = static_cast<std::uint32_t>(times_.size());
    if (runs_.empty() || run_key(runs_.back()) != run_key(entry)) {
      runs_.push_back(
          {.campaign = entry.campaign, .type = entry.type, .begin = position, .end = position});
    }
    runs_.back().end = position + 1;
    times_.push_back(entry.time);
    creatives_.push_back(entry.creative);
    fingerprints_.push_back(entry.fingerprint);
  }
  loose_.clear();
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
