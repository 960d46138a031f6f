#include "rules/history.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace fcap::rules {
namespace {

std::uint32_t count_since_in(std::span<const Instant> times, std::int64_t from_ms) noexcept {
  constexpr std::size_t kWalkMax = 16;
  if (times.size() > kWalkMax) {
    const auto first =
        std::lower_bound(times.begin(), times.end(), from_ms,
                         [](Instant time, std::int64_t from) { return to_ms(time) < from; });
    return static_cast<std::uint32_t>(times.end() - first);
  }
  std::size_t at = times.size();
  while (at > 0 && to_ms(times[at - 1]) >= from_ms) --at;
  return static_cast<std::uint32_t>(times.size() - at);
}

}  // namespace

// The two hash tables are emptied by a new round: an entry counts only if it carries the
// present one. Clearing them instead would write a few kilobytes per check, more than a usual check
// reads. Its number wraps after four billion checks, and only then are the tables really
// cleared.
void History::begin(const CompiledRules& rules, const ledger::Ledger& ledger) noexcept {
  rules_ = &rules;
  ledger_ = &ledger;
  target_count_ = 0;
  pieces_.clear();
  merged_.clear();
  reserved_marks_ = 0;
  asked_user_ = asked_catalog_ = asked_creatives_ = false;
  if (++round_ == 0) {
    std::fill(slots_.begin(), slots_.end(), TargetSlot{});
    std::fill(run_slots_.begin(), run_slots_.end(), RunSlot{});
    round_ = 1;
  }
}

std::uint64_t History::key_of(Scope scope, std::uint64_t id) noexcept {
  constexpr unsigned kIdBits = 48;
  return (static_cast<std::uint64_t>(scope) << kIdBits) | id;
}

std::size_t History::slot_of(std::uint64_t key) const noexcept {
  constexpr std::uint64_t kGoldenRatio = 0x9E37'79B9'7F4A'7C15;
  std::size_t at = ((key * kGoldenRatio) >> 32) & (slots_.size() - 1);
  while (slots_[at].round == round_ && slots_[at].key != key) {
    at = (at + 1) & (slots_.size() - 1);
  }
  return at;
}

std::uint32_t History::find(Scope scope, std::uint64_t id) const noexcept {
  const TargetSlot& slot = slots_[slot_of(key_of(scope, id))];
  return slot.round == round_ ? slot.target : kNone;
}

void History::grow() {
  slots_.assign(slots_.size() * 2, TargetSlot{});
  for (std::uint32_t i = 0; i < target_count_; ++i) {
    slots_[slot_of(targets_[i].key)] = {targets_[i].key, round_, i};
  }
}

std::uint32_t History::ask(Scope scope, std::uint64_t id, const TargetRules* rules) {
  const std::uint64_t key = key_of(scope, id);
  std::size_t at = slot_of(key);
  if (slots_[at].round == round_) return slots_[at].target;
  if (2 * (target_count_ + 1) > slots_.size()) {
    grow();
    at = slot_of(key);
  }
  const auto index = static_cast<std::uint32_t>(target_count_++);
  if (target_count_ > targets_.size()) targets_.resize(target_count_ * 2);
  targets_[index].reset(key, scope, rules);
  slots_[at] = {key, round_, index};
  asked_user_ |= scope == Scope::kUser;
  asked_catalog_ |= scope == Scope::kAdvertiser || scope == Scope::kGroup;
  asked_creatives_ |= scope == Scope::kCreative;
  return index;
}

void History::attach(GatheredTarget& target, EventType type, std::uint32_t begin,
                     std::uint32_t end) {
  const auto of_type = static_cast<std::size_t>(type);
  const auto added = static_cast<std::uint32_t>(pieces_.size());
  pieces_.push_back({begin, end, kNone});
  if (target.count[of_type] == 0) {
    target.first_piece[of_type] = added;
  } else {
    pieces_[target.last_piece[of_type]].next = added;
  }
  target.count[of_type] += end - begin;
  target.last_piece[of_type] = added;
}

void History::gather(std::size_t campaigns, std::int64_t now_ms) {
  // An index over the runs pays when the look-ups are about as many.
  constexpr std::size_t kRunsPerCampaignMax = 4;
  runs_are_indexed_ = ledger_->runs().size() <= kRunsPerCampaignMax * campaigns;
  if (runs_are_indexed_) index_runs();
  if (asked_user_) {
    GatheredTarget& user = targets_[find(Scope::kUser, 0)];
    for (const ledger::Run& run : ledger_->runs()) {
      user.count[static_cast<std::size_t>(run.type)] += run.end - run.begin;
    }
  }
  if (asked_catalog_) gather_runs();
  if (asked_creatives_) gather_creatives();
  if (!ledger_->reservations().empty()) gather_reserved(now_ms);
}

// Calls visit(std::span<const Instant>) for each ascending piece.
template <typename Visit>
void History::for_each_piece(const Timeline& timeline, Visit&& visit) const {
  const std::span<const Instant> times = ledger_->times();
  if (timeline.first_piece == Timeline::kEveryRun) {
    for (const ledger::Run& run : ledger_->runs()) {
      if (run.type == timeline.type) visit(times.subspan(run.begin, run.end - run.begin));
    }
    return;
  }
  for (std::uint32_t i = timeline.first_piece; i != kNone; i = pieces_[i].next) {
    visit(times.subspan(pieces_[i].begin, pieces_[i].end - pieces_[i].begin));
  }
}

void History::gather_runs() {
  const std::span<const ledger::Run> runs = ledger_->runs();
  for (const ledger::Run& run : runs) rules_->campaigns.prefetch(run.campaign);
  for (const ledger::Run& run : runs) {
    const CompiledCampaign* campaign = rules_->campaigns.find(run.campaign);
    if (campaign == nullptr) continue;
    if (campaign->advertiser != kNone) {
      const std::uint32_t target = find(Scope::kAdvertiser, campaign->advertiser);
      if (target != kNone) attach(targets_[target], run.type, run.begin, run.end);
    }
    for (const std::uint32_t group : rules_->groups_of(*campaign)) {
      const std::uint32_t target = find(Scope::kGroup, group);
      if (target != kNone) attach(targets_[target], run.type, run.begin, run.end);
    }
  }
}

void History::gather_creatives() {
  const std::span<const std::uint64_t> creatives = ledger_->creatives();
  for (const ledger::Run& run : ledger_->runs()) {
    for (std::uint32_t i = run.begin; i < run.end;) {
      std::uint32_t end = i + 1;
      while (end < run.end && creatives[end] == creatives[i]) ++end;
      if (creatives[i] != 0) {
        const std::uint32_t target = find(Scope::kCreative, creatives[i]);
        if (target != kNone) attach(targets_[target], run.type, i, end);
      }
      i = end;
    }
  }
}

// The runs are sorted by campaign, so a search would find one. We build an index instead where a
// check asks for about as many campaigns as there are runs: then filling a slot per run costs less
// than a search per candidate. The hash is the campaign's own low bits, since a campaign id is
// already a hash. Only the first run of a campaign has a slot, because its other runs follow it.
void History::index_runs() {
  const std::span<const ledger::Run> runs = ledger_->runs();
  const std::size_t needed = std::bit_ceil(2 * runs.size() + 2);
  if (run_slots_.size() < needed) run_slots_.assign(needed, RunSlot{});
  const std::size_t mask = run_slots_.size() - 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0 && runs[i].campaign == runs[i - 1].campaign) continue;
    std::size_t at = runs[i].campaign & mask;
    while (run_slots_[at].round == round_) at = (at + 1) & mask;
    run_slots_[at] = {round_, static_cast<std::uint32_t>(i)};
  }
}

std::uint32_t History::search_run(std::uint64_t campaign) const noexcept {
  const std::span<const ledger::Run> runs = ledger_->runs();
  // A binary search without branches: which way it goes cannot be predicted.
  const ledger::Run* first = runs.data();
  for (std::size_t left = runs.size(); left > 0;) {
    const std::size_t half = (left + 1) / 2;
    first += half * static_cast<std::size_t>(first[half - 1].campaign < campaign);
    left -= half;
  }
  return static_cast<std::uint32_t>(first - runs.data());
}

Timeline History::timeline_of_target(std::uint32_t index, EventType type) const noexcept {
  const GatheredTarget& target = targets_[index];
  const auto of_type = static_cast<std::size_t>(type);
  Timeline timeline;
  timeline.type = type;
  timeline.count = target.count[of_type];
  timeline.target = index;
  if (timeline.count == 0) return timeline;
  if (target.is_merged(type)) {
    timeline.sorted =
        std::span<const Instant>(merged_).subspan(target.merged_at[of_type], timeline.count);
  } else if (target.scope == Scope::kUser) {
    timeline.first_piece = Timeline::kEveryRun;
  } else if (const Piece& piece = pieces_[target.first_piece[of_type]]; piece.next == kNone) {
    timeline.sorted = ledger_->times().subspan(piece.begin, timeline.count);
  } else {
    timeline.first_piece = target.first_piece[of_type];
  }
  return timeline;
}

std::uint32_t History::count_since(const Timeline& timeline, std::int64_t from_ms) const noexcept {
  if (timeline.first_piece == kNone) return count_since_in(timeline.sorted, from_ms);
  std::uint32_t count = 0;
  for_each_piece(timeline,
                 [&](std::span<const Instant> piece) { count += count_since_in(piece, from_ms); });
  return count;
}

std::int64_t History::kth_newest_ms(const Timeline& timeline, std::uint32_t k) {
  if (timeline.first_piece == kNone) {
    return bounded_ms(timeline.sorted[timeline.sorted.size() - k]);
  }
  selection_.clear();
  for_each_piece(timeline, [&](std::span<const Instant> piece) {
    // No piece can give more than its newest k.
    const auto newest = piece.last(std::min<std::size_t>(piece.size(), k));
    selection_.insert(selection_.end(), newest.begin(), newest.end());
  });
  const auto kth = selection_.begin() + (k - 1);
  std::nth_element(selection_.begin(), kth, selection_.end(), std::greater<>());
  return bounded_ms(*kth);
}

std::span<const Instant> History::sorted(const Timeline& timeline) {
  if (timeline.first_piece == kNone) return timeline.sorted;
  GatheredTarget& target = targets_[timeline.target];
  std::uint32_t& merged_at = target.merged_at[static_cast<std::size_t>(timeline.type)];
  if (!target.is_merged(timeline.type)) {
    merged_at = static_cast<std::uint32_t>(merged_.size());
    target.merged =
        static_cast<std::uint8_t>(target.merged | (1U << static_cast<unsigned>(timeline.type)));
    for_each_piece(timeline, [&](std::span<const Instant> piece) {
      merged_.insert(merged_.end(), piece.begin(), piece.end());
    });
    std::sort(merged_.begin() + merged_at, merged_.end());
  }
  return std::span<const Instant>(merged_).subspan(merged_at, timeline.count);
}

}  // namespace fcap::rules
