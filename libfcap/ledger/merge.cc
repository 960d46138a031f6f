#include <algorithm>
#include <cassert>
#include <cstdint>
#include <tuple>

#include "ledger/ledger.h"
#include "ledger/order.h"

namespace fcap::ledger {
namespace {

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
  // Only now, because copies of what the columns hold already are rare in so long a tail.
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

}  // namespace fcap::ledger
