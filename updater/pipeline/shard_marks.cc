#include "updater/pipeline/shard_marks.h"

#include <algorithm>
#include <utility>

namespace fcap::updater {
namespace {

Claim claim_of(const MarkValue& mark) {
  return {mark.position, mark.gaps};
}

// Every offset below `end` that is not claimed.
Gaps not_claimed(const Claim& claim, std::int64_t end) {
  return gaps_below(gaps_with(claim.gaps, {claim.position, end}), end);
}

}  // namespace

std::optional<MarkValue> mark_of_shard(const ShardLook& look, std::span<const MarkValue> found) {
  std::optional<MarkValue> newest;
  for (const MarkValue& mark : found) {
    if (!mark.shard) continue;
    const std::string& history = mark.shard->replication;
    // A restarted master keeps its id, and a promoted replica knows the history that it continues.
    const bool of_this = mark.shard->node == look.node || history == look.replication ||
                         (!look.former.empty() && history == look.former);
    if (of_this && (!newest || newest->shard->serial < mark.shard->serial)) newest = mark;
  }
  return newest;
}

ShardMarks::ShardMarks(std::int64_t retention_start, std::int64_t next, SlotSet all)
    : retention_start_(retention_start), next_(next), all_(std::move(all)) {}

void ShardMarks::set_nodes(std::span<const std::string> nodes) {
  ++clock_;
  for (auto at = shards_.begin(); at != shards_.end();) {
    if (std::ranges::find(nodes, at->first) != nodes.end()) {
      ++at;
      continue;
    }
    // What it was importing may not be on the replica that replaced it.
    const SlotSet importing = at->second.look.importing;
    at = shards_.erase(at);
    doubted_ -= importing;
    doubt(importing);
  }
  for (const std::string& node : nodes) shards_.try_emplace(node);
  judge();
}

void ShardMarks::looked(const ShardLook& look, std::uint64_t epoch) {
  const auto found = shards_.find(look.node);
  if (found == shards_.end()) return;
  Shard& shard = found->second;
  shard.looked_at = ++clock_;
  const bool holds_nothing = look.owned.empty() && look.importing.empty();
  if (!shard.seen && holds_nothing && look.former.empty()) {
    shard.safe_replication = look.replication;
  }
  if (shard.epoch != epoch || shard.look.replication != look.replication) {
    shard.compared = false;
    shard.compared_epoch = 0;
    shard.steady = 0;
  }
  if (!shard.look.migrating.covers(look.migrating)) shard.migrating_at = clock_;
  // Of a slot that left, or was about to, keys were elsewhere. If it stays or comes back, it is
  // taken in like one that arrives.
  const SlotSet moved = shard.named - (look.owned - (shard.look.migrating - look.migrating));
  shard.named -= moved;
  shard.partly |= moved;
  shard.look = look;
  shard.epoch = epoch;
  shard.seen = true;
  if (look.owned.empty() && shard.compared) {
    // Its marks have left with its slots, so nothing shows any more that it lost nothing before.
    shard.named = {};
    shard.checked_at = shard.looked_at;
    shard.confirmed_at = ++clock_;
  }
  judge();
}

bool ShardMarks::must_read(const std::string& node) const {
  const auto found = shards_.find(node);
  return found != shards_.end() && !found->second.compared;
}

void ShardMarks::found(const std::string& node, std::uint64_t epoch,
                       std::span<const MarkValue> marks) {
  const auto at = shards_.find(node);
  if (at == shards_.end() || !at->second.seen || at->second.epoch != epoch) return;
  Shard& shard = at->second;
  ++clock_;
  for (const MarkValue& mark : marks) {
    if (mark.shard) highest_serial_ = std::max(highest_serial_, mark.shard->serial);
  }
  std::optional<MarkValue> own = mark_of_shard(shard.look, marks);
  // Within a history marks only grow: an older one came back with its slot, after a loss.
  if (own && shard.confirmed && own->shard->replication == shard.look.replication &&
      shard.confirmed->shard->replication == shard.look.replication &&
      own->shard->serial < shard.confirmed->shard->serial) {
    own.reset();
  }
  const bool reconnected = shard.compared_epoch != epoch;
  const bool ours = own && (own == shard.confirmed || own == shard.attempted);
  if (reconnected || !ours) lose(shard, own, reconnected);
  shard.confirmed = own;
  shard.attempted.reset();
  shard.compared = true;
  shard.compared_epoch = epoch;
  shard.checked_at = shard.looked_at;
  shard.confirmed_at = clock_;
  judge();
}

// The shard's data set is not the one that was written to, or may not be: only what its mark says
// is certain, and only for the slots that it names.
void ShardMarks::lose(Shard& shard, const std::optional<MarkValue>& own, bool reconnected) {
  const bool ours = own && (own == shard.confirmed || own == shard.attempted);
  const bool same_history = own && own->shard->replication == shard.look.replication;
  shard.steady = 0;
  if (!same_history) {
    doubted_ -= shard.look.importing;
    doubt(shard.look.importing);
  }
  if (!own) {
    if (shard.confirmed) shard.safe_replication.clear();
  } else if (!same_history) {
    shard.safe_replication.clear();
  } else if (own->shard->arrivals_safe) {
    shard.safe_replication = shard.look.replication;
  } else if (!ours) {
    shard.safe_replication.clear();
  }
  if (!shard.safe()) shard.unsafe_since = clock_;
  shard.named = {};
  shard.partly = {};
  if (!own) return;
  Claim certain = claim_of(*own);
  if (reconnected && own == shard.attempted && own != shard.confirmed) {
    certain = shard.confirmed ? common_claim(claim_of(*shard.confirmed), certain)
                              : Claim{retention_start_, {}};
  }
  const SlotSet claimed = own->shard->slots | own->shard->partly;
  lack(claimed - named_by_owner(shard), not_claimed(certain, next_));
  // Where its data set may be older than its slots, the keys need not be in it.
  shard.partly = own->shard->partly & shard.look.owned;
  shard.named = claimed - shard.partly;
}

// Of the slots that are not the shard's any more, those that their owners' marks name.
SlotSet ShardMarks::named_by_owner(const Shard& but) const {
  SlotSet named;
  for (const auto& [node, shard] : shards_) {
    if (&shard == &but || !shard.compared) continue;
    named |= shard.look.owned & shard.named;
  }
  return named - but.look.owned;
}

void ShardMarks::lack(const SlotSet& slots, const Gaps& gaps) {
  constexpr std::size_t kRemembered = 64;
  if (slots.empty()) return;
  missing_.add(slots, gaps);
  losses_.push_back({++clock_, slots});
  if (losses_.size() <= kRemembered) return;
  losses_forgotten_ = losses_.front().stamp;
  losses_.pop_front();
}

void ShardMarks::filled(const SlotSet& slots, Gap offsets, std::uint64_t stamp) {
  if (stamp < losses_forgotten_) return;
  SlotSet unharmed = slots;
  for (const Loss& loss : losses_) {
    if (loss.stamp > stamp) unharmed -= loss.slots;
  }
  missing_.remove(unharmed, offsets);
}

void ShardMarks::restart(const SlotSet& slots) {
  if (slots.empty()) return;
  lack(slots, {{retention_start_, next_}});
  slots_restarted_ += slots.size();
}

void ShardMarks::doubt(SlotSet slots) {
  slots -= doubted_;
  if (slots.empty()) return;
  restart(slots);
  doubted_ |= slots;
  doubted_at_ = clock_;
}

void ShardMarks::judge() {
  const bool decided = judge_moving();
  for (auto& [node, shard] : shards_) {
    if (!shard.compared) continue;
    const SlotSet arrivals = shard.look.owned - shard.named;
    if (!shard.arrivals.covers(arrivals)) shard.arrivals_at = clock_;
    shard.arrivals = arrivals;
    judge_arrivals(shard);
    if (decided) make_safe(shard);
  }
}

// Keys of a slot that migrates are on two masters; both must keep them. Whether that is known of
// all such slots.
bool ShardMarks::judge_moving() {
  SlotSet moving;
  for (const auto& [node, shard] : shards_) moving |= shard.look.migrating | shard.look.importing;
  doubted_ &= moving;
  for (const auto& [node, shard] : shards_) {
    if (shard.compared && !shard.safe()) doubt(shard.look.importing);
  }
  bool decided = true;
  for (const auto& [node, source] : shards_) {
    SlotSet alone = source.look.migrating - doubted_;
    bool all_looked = true;
    for (const auto& [other, target] : shards_) {
      if (&target == &source) continue;
      all_looked = all_looked && target.compared && target.looked_at > source.migrating_at;
      alone -= target.look.importing | target.look.owned;
    }
    if (alone.empty()) continue;
    // The master that was importing them has been replaced.
    if (all_looked) doubt(alone);
    decided = decided && all_looked;
  }
  return decided;
}

void ShardMarks::judge_arrivals(Shard& shard) {
  SlotSet arrivals = shard.arrivals;
  SlotSet claimed = shard.partly;
  // A slot may have passed through any shard on its way.
  bool all_safe = shard.safe();
  for (const auto& [node, other] : shards_) {
    if (&other == &shard) continue;
    arrivals -= other.look.owned;
    claimed |= other.named | other.partly;
    all_safe = all_safe && (!other.compared || other.safe());
  }
  if (arrivals.empty()) return;
  if (all_safe) {
    if (!all_slots_owned() || !all_checked_after(shard, shard.arrivals_at)) return;
    restart(arrivals - claimed);
  } else {
    restart(arrivals);
  }
  shard.named |= arrivals;
  shard.partly -= arrivals;
  shard.arrivals -= arrivals;
}

bool ShardMarks::all_slots_owned() const {
  SlotSet owned;
  for (const auto& [node, shard] : shards_) owned |= shard.look.owned;
  return owned == all_;
}

bool ShardMarks::all_checked_after(const Shard& shard, std::uint64_t stamp) const {
  return std::ranges::all_of(shards_, [&](const auto& it) {
    const Shard& other = it.second;
    return &other == &shard || (other.compared && other.checked_at > stamp);
  });
}

// A slot that arrives from now on has lost nothing here: none was on its way when the shard lost
// something, or it is known, and the marks that name it say so.
void ShardMarks::make_safe(Shard& shard) {
  if (shard.safe() || !shard.arrivals.empty() || !all_slots_owned()) return;
  if (!all_checked_after(shard, std::max(shard.unsafe_since, doubted_at_))) return;
  const bool last = std::ranges::all_of(shards_, [&shard](const auto& it) {
    return &it.second == &shard || it.second.confirmed_at < shard.looked_at;
  });
  if (last) shard.safe_replication = shard.look.replication;
}

std::optional<MarkValue> ShardMarks::to_write(const std::string& node, std::int64_t position) {
  const auto found = shards_.find(node);
  if (found == shards_.end() || !found->second.compared) return std::nullopt;
  Shard& shard = found->second;
  if (shard.look.owned.empty()) return std::nullopt;
  for (const auto& [other_node, other] : shards_) {
    if (&other == &shard || other.steady == 0) continue;
    const SlotSet theirs = (other.look.owned & other.confirmed->shard->slots) - shard.look.owned;
    shard.named -= theirs;
    shard.partly -= theirs;
  }
  // What was named before is named until an owner's mark names it: another updater may read this.
  const SlotSet named = shard.named | shard.partly;
  MarkValue mark{.position = position};
  mark.gaps = gaps_merged(gaps_below(missing_.of(named), position), MarkValue::kGapsMax);
  const SlotSet whole = shard.named & (shard.look.owned - shard.look.migrating);
  mark.shard = {.node = node,
                .replication = shard.look.replication,
                .arrivals_safe = shard.safe(),
                .serial = next_serial(shard),
                .slots = whole,
                .partly = named - whole};
  shard.attempted = mark;
  return mark;
}

// Above every serial that was seen in any shard, so that a mark that left with its slot and comes
// back is known to be older. Where a shard has no mark, the next one is far above them.
std::uint64_t ShardMarks::next_serial(const Shard& shard) {
  constexpr int kStartBits = 32;
  if (shard.confirmed) return ++highest_serial_;
  highest_serial_ = ((highest_serial_ >> kStartBits) + 1) << kStartBits;
  return highest_serial_;
}

void ShardMarks::written(const std::string& node, std::uint64_t epoch) {
  const auto found = shards_.find(node);
  if (found == shards_.end()) return;
  Shard& shard = found->second;
  if (!shard.attempted || !shard.compared || shard.epoch != epoch) return;
  shard.confirmed = std::exchange(shard.attempted, std::nullopt);
  shard.checked_at = shard.looked_at;
  shard.confirmed_at = ++clock_;
  if (shard.steady == 0) shard.steady = clock_;
  judge();
}

void ShardMarks::doubtful(const std::string& node) {
  const auto found = shards_.find(node);
  if (found != shards_.end()) found->second.compared = false;
}

void ShardMarks::lost(const std::string& node) {
  const auto found = shards_.find(node);
  if (found != shards_.end()) found->second.steady = 0;
}

bool ShardMarks::counts(const std::string& node, std::uint64_t epoch, std::uint64_t stamp) const {
  const auto found = shards_.find(node);
  if (found == shards_.end()) return false;
  const Shard& shard = found->second;
  return shard.steady != 0 && shard.steady <= stamp && shard.epoch == epoch;
}

std::optional<ShardMarks::Segment> ShardMarks::segment(std::int64_t position,
                                                       std::int64_t offsets_max) const {
  SlotSet steady;
  for (const auto& [node, shard] : shards_) {
    if (shard.steady != 0) steady |= shard.look.owned;
  }
  std::optional<Segment> newest;
  for (const MissingOffsets::Stretch& stretch : missing_.stretches()) {
    const SlotSet slots = stretch.slots & steady;
    const Gaps below = gaps_below(stretch.gaps, position);
    if (slots.empty() || below.empty()) continue;
    const Gap gap = below.back();
    if (newest && newest->offsets.to >= gap.to) continue;
    newest = {slots, {std::max(gap.from, gap.to - offsets_max), gap.to}};
  }
  return newest;
}

bool ShardMarks::settled(std::int64_t position) const {
  if (!missing_.empty()) return false;
  return std::ranges::all_of(shards_, [position](const auto& it) {
    const Shard& shard = it.second;
    if (!shard.seen || !shard.compared) return false;
    if (shard.look.owned.empty()) return true;
    return shard.steady != 0 && shard.confirmed->position == position &&
           shard.confirmed->shard->arrivals_safe && shard.confirmed->gaps.empty() &&
           shard.confirmed->shard->slots == shard.look.owned;
  });
}

std::optional<MarkValue> ShardMarks::confirmed(const std::string& node) const {
  const auto found = shards_.find(node);
  return found == shards_.end() ? std::nullopt : found->second.confirmed;
}

}  // namespace fcap::updater
