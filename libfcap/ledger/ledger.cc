#include "ledger/ledger.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <tuple>

#include "ledger/format.h"
#include "ledger/order.h"

namespace fcap::ledger {
namespace {

static_assert(static_cast<std::uint8_t>(EventType::kConversion) <= format::kTypeMask);

// What a record can hold of an entry, so that a ledger and its record never differ.
Entry representable(Entry entry) noexcept {
  entry.time = format::representable(entry.time);
  entry.campaign &= format::kHashMask;
  entry.creative &= format::kHashMask;
  return entry;
}

auto identity_of(const Reservation& reservation) noexcept {
  const Entry& event = reservation.event;
  return std::tuple(event.campaign, event.type, event.fingerprint);
}

// Up to this many entries are put into the columns one by one.
constexpr std::size_t kInsertionsMax = 16;

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
  if (keep.size() != size()) return;
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
    if (is_repeated_id(times_[i], entry.time)) ++repeated_ids_;
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

// Leaves the winner of each identity among the loose entries, in column order.
void Ledger::settle_loose() {
  std::sort(loose_.begin(), loose_.end(), identity_first_then_winner);
  const auto is_copy = [this](const Entry& winner, const Entry& entry) {
    if (!same_identity(winner, entry)) return false;
    if (is_repeated_id(winner.time, entry.time)) ++repeated_ids_;
    return true;
  };
  loose_.erase(std::unique(loose_.begin(), loose_.end(), is_copy), loose_.end());
  std::sort(loose_.begin(), loose_.end(), column_order);
}

// Moves the loose entries into the columns, which are canonical before and after.
void Ledger::merge_loose() {
  if (loose_.size() <= kInsertionsMax) {
    for (const Entry& entry : loose_) insert(entry);
    loose_.clear();
    return;
  }
  settle_loose();
  interleave_loose();
  // We look for copies only now, because so long a tail rarely repeats what the columns hold.
  if (!columns_are_canonical()) rebuild_with_loose();
  loose_.clear();
}

// Moves settled entries into the columns, whatever identities they share with them. From the back,
// so that nothing is overwritten and what stands before the first of them does not move.
void Ledger::interleave_loose() {
  std::size_t new_runs = 0;
  auto known = runs_.begin();
  for (std::size_t i = 0; i < loose_.size(); ++i) {
    const auto key = run_key(loose_[i]);
    if (i > 0 && run_key(loose_[i - 1]) == key) continue;
    while (known != runs_.end() && run_key(*known) < key) ++known;
    if (known == runs_.end() || run_key(*known) != key) ++new_runs;
  }
  std::size_t run_from = runs_.size();
  std::size_t run_to = run_from + new_runs;
  auto to = static_cast<std::uint32_t>(times_.size() + loose_.size());
  runs_.resize(run_to);
  times_.resize(to);
  creatives_.resize(to);
  fingerprints_.resize(to);
  const auto move = [&](std::uint32_t from) {
    --to;
    times_[to] = times_[from];
    creatives_[to] = creatives_[from];
    fingerprints_[to] = fingerprints_[from];
  };
  for (std::size_t left = loose_.size(); left > 0;) {
    auto key = run_key(loose_[left - 1]);
    Run old{.begin = 0, .end = 0};
    if (run_from > 0 && run_key(runs_[run_from - 1]) >= key) {
      old = runs_[--run_from];
      key = run_key(old);
    }
    Run merged{.campaign = std::get<0>(key), .type = std::get<1>(key), .begin = 0, .end = to};
    for (; left > 0 && run_key(loose_[left - 1]) == key; --left) {
      const Entry& entry = loose_[left - 1];
      while (old.end > old.begin && std::tie(times_[old.end - 1], fingerprints_[old.end - 1]) >
                                        std::tie(entry.time, entry.fingerprint)) {
        move(--old.end);
      }
      --to;
      times_[to] = entry.time;
      creatives_[to] = entry.creative;
      fingerprints_[to] = entry.fingerprint;
    }
    while (old.end > old.begin) move(--old.end);
    merged.begin = to;
    runs_[--run_to] = merged;
  }
  loose_.clear();
}

// Rebuilds the columns from whatever they and the loose entries hold.
void Ledger::rebuild_with_loose() {
  for (const Run& run : runs_) {
    for (std::uint32_t i = run.begin; i < run.end; ++i) loose_.push_back(entry(run, i));
  }
  runs_.clear();
  times_.clear();
  creatives_.clear();
  fingerprints_.clear();
  settle_loose();
  interleave_loose();
}

void Ledger::merge(const Reservation& reservation) {
  Reservation held = reservation;
  held.event.time = format::representable(held.event.time);
  held.event.campaign &= format::kHashMask;
  held.event.creative &= format::kHashMask;
  held.expires =
      std::clamp(held.expires, held.event.time, held.event.time + format::kReservationLifeMax);
  if (erased_before_ && held.event.time <= *erased_before_) return;
  reservations_.push_back(held);
  settle_reservations();
}

const Reservation* Ledger::find_reservation(std::uint64_t campaign, EventType type,
                                            std::uint32_t fingerprint) const noexcept {
  const auto key = std::tuple(campaign, type, fingerprint);
  const auto found = std::lower_bound(
      reservations_.begin(), reservations_.end(), key,
      [](const Reservation& held, const auto& wanted) { return identity_of(held) < wanted; });
  return found == reservations_.end() || identity_of(*found) != key ? nullptr : &*found;
}

void Ledger::merge_reservations(const Ledger& other) {
  if (other.reservations_.empty()) return;
  reservations_.insert(reservations_.end(), other.reservations_.begin(), other.reservations_.end());
  settle_reservations();
}

// Merges copies of one identity, whatever their order and number.
void Ledger::settle_reservations() {
  std::sort(reservations_.begin(), reservations_.end(),
            [](const auto& a, const auto& b) { return identity_of(a) < identity_of(b); });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < reservations_.size(); ++i) {
    Reservation& into = reservations_[kept];
    const Reservation& from = reservations_[i];
    if (identity_of(into) != identity_of(from)) {
      reservations_[++kept] = from;
      continue;
    }
    into.released = into.released || from.released;
    into.expires = std::max(into.expires, from.expires);
    if (std::tie(into.event.time, into.event.creative) <
        std::tie(from.event.time, from.event.creative)) {
      into.event = from.event;
    }
  }
  reservations_.resize(kept + 1);
}

}  // namespace fcap::ledger
