#include "updater/pipeline/shard_marks.h"

#include <algorithm>
#include <utility>

#include "updater/process/invariant.h"

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

bool ShardMarks::ShardState::attempted(const std::optional<MarkValue>& mark) const {
  return mark && std::ranges::find(attempts, *mark) != attempts.end();
}

ShardMarks::ShardMarks(std::int64_t retention_start, std::int64_t next, SlotSet all, SlotSet places)
    : retention_start_(retention_start),
      next_(next),
      all_(std::move(all)),
      places_(std::move(places)) {}

void ShardMarks::set_nodes(std::span<const std::string> nodes) {
  ++clock_;
  const auto gone = [&nodes](const auto& it) {
    return std::ranges::find(nodes, it.first) == nodes.end();
  };
  // What was on its way to it may not be on the replica that replaced it.
  const bool lost = std::ranges::any_of(shards_, [&](const auto& it) {
    const ShardLook& look = it.second.look;
    return gone(it) && !(look.owned.empty() && look.importing.empty());
  });
  if (lost) something_was_lost();
  for (const auto& it : shards_) {
    if (gone(it)) restart(it.second.passed);
  }
  std::erase_if(shards_, gone);
  for (const std::string& node : nodes) shards_.try_emplace(node);
  review_arrivals();
}

void ShardMarks::looked(const ShardLook& look, std::uint64_t epoch) {
  const auto found = shards_.find(look.node);
  if (found == shards_.end()) return;
  ShardState& shard = found->second;
  const std::uint64_t looked_before = std::exchange(shard.looked_at, ++clock_);
  const bool holds_nothing = look.owned.empty() && look.importing.empty();
  // A master that has no slots and continues nobody's history is empty: it cannot have lost
  // anything before its first slot arrives.
  if (!shard.seen && holds_nothing && look.former.empty()) {
    shard.safe_replication = look.replication;
  }
  if (shard.epoch != epoch || shard.look.replication != look.replication) {
    shard.compared = false;
    shard.compared_epoch = 0;
    shard.steady = 0;
  }
  // A slot that has left since the last look may have had its keys elsewhere already when something
  // was lost. They may be among what was lost, and no mark would show that.
  const SlotSet stayed = look.owned - look.migrating;
  if (lost_at_ >= looked_before) restart((shard.named - shard.look.migrating) - stayed);
  // Keys of a slot that left, or was about to, were elsewhere. If it stays or comes back, it is
  // taken in like one that arrives.
  const SlotSet moved = shard.named - (look.owned - (shard.look.migrating - look.migrating));
  shard.named -= moved;
  shard.partly |= moved;
  shard.passed |= shard.look.importing | shard.arrivals;
  // An older mark may have come with its slot. Until it is read, nobody deletes it.
  if (!((look.owned - shard.look.owned) & places_).empty()) shard.compared = false;
  shard.look = look;
  shard.epoch = epoch;
  shard.seen = true;
  if (look.owned.empty() && shard.compared) {
    // Its marks have left with its slots, so nothing shows that it lost nothing before.
    if (std::exchange(shard.confirmed, std::nullopt)) something_was_lost();
    shard.checked_at = shard.looked_at;
    shard.told_at = shard.looked_at;
  }
  const bool copies_left =
      shard.confirmed && std::ranges::none_of(shard.confirmed->shard->places, [&look](int place) {
        return look.owned.contains(place);
      });
  if (copies_left) shard.compared = false;
  review_arrivals();
}

bool ShardMarks::must_read(const std::string& node) const {
  const auto found = shards_.find(node);
  return found != shards_.end() && !found->second.compared;
}

bool ShardMarks::was_read(const std::string& node) const {
  const auto found = shards_.find(node);
  return found != shards_.end() && found->second.read;
}

bool ShardMarks::was_read_over(const std::string& node, std::uint64_t epoch) const {
  const auto found = shards_.find(node);
  return found != shards_.end() && epoch != 0 && found->second.compared_epoch == epoch;
}

std::uint64_t ShardMarks::look_of(const std::string& node) const {
  const auto found = shards_.find(node);
  return found == shards_.end() ? 0 : found->second.looked_at;
}

void ShardMarks::found(const std::string& node, std::uint64_t epoch,
                       std::span<const MarkValue> marks, std::uint64_t look) {
  const auto at = shards_.find(node);
  if (at == shards_.end() || !at->second.seen || at->second.epoch != epoch) return;
  ShardState& shard = at->second;
  if (look != shard.looked_at) return;
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
  const bool same_history = own && own->shard->replication == shard.look.replication;
  const bool ours = own && (own == shard.confirmed || shard.attempted(own));
  bool unharmed = same_history && ours;
  if (!ours && !shard.confirmed) {
    unharmed = own ? same_history && !shard.read && own->shard->arrivals_safe : shard.safe();
  }
  // A slot may have left with its copy after the shard was asked what it owns. So it is asked once
  // more before this counts as a loss.
  shard.suspected = !unharmed && !shard.suspected;
  if (shard.suspected) {
    shard.compared = false;
    shard.steady = 0;
    return;
  }
  if (!unharmed || !ours) shard.named = shard.partly = {};
  if (reconnected || !unharmed || !ours) take_over(shard, own);
  if (reconnected || !unharmed) shard.steady = 0;
  if (own != shard.confirmed) shard.told_at = 0;
  const bool first = !std::exchange(shard.read, true);
  shard.awaited = false;
  shard.confirmed = own;
  shard.writing = false;
  if (!ours) shard.attempts = half_written(shard.look, marks, own);
  shard.compared = true;
  shard.compared_epoch = epoch;
  shard.checked_at = shard.looked_at;
  if (!unharmed) {
    shard.safe_replication.clear();
    shard.unsafe_since = ++clock_;
    something_was_lost();
    restart(shard.passed);
    name_what_is_here(shard);
  } else if (own && own->shard->arrivals_safe) {
    shard.safe_replication = shard.look.replication;
  }
  shard.passed = {};
  if (first && lost_at_ != 0) restart(moving() & (shard.named | shard.partly));
  review_arrivals();
}
// Only what its mark says is certain, and only for the slots that it names.
void ShardMarks::take_over(ShardState& shard, const std::optional<MarkValue>& own) {
  if (!own) return;
  Claim certain = claim_of(*own);
  // What was acknowledged since the confirmed one was written may not be there.
  if (shard.attempted(own) && own != shard.confirmed) {
    certain = shard.confirmed ? common_claim(claim_of(*shard.confirmed), certain)
                              : Claim{retention_start_, {}};
  }
  certain.position = std::max(certain.position, oldest_);
  const SlotSet claimed = own->shard->slots | own->shard->partly;
  if ((shard.named | shard.partly).empty()) {
    shard.named = own->shard->slots & shard.look.owned;
    shard.partly = claimed - shard.named;
    shard.serial = own->shard->serial;
    // Before named_by_owner(), or an older mark would keep the gaps of a newer one out.
    drop_older_claims(shard);
  }
  lack(claimed - named_by_owner(shard), not_claimed(certain, next_));
}

// Where two marks name a slot, the newer one speaks for it: the older one may have come back with
// its slot, or its shard had no connection to the updater since the slot left.
void ShardMarks::drop_older_claims(ShardState& shard) {
  for (auto& [node, other] : shards_) {
    if (&other == &shard || !other.read) continue;
    const SlotSet both = (shard.named | shard.partly) & (other.named | other.partly);
    ShardState& older = shard.serial < other.serial ? shard : other;
    older.named -= both;
    older.partly -= both;
  }
}

// The slots that are not the shard's any more and that their owners' marks name.
SlotSet ShardMarks::named_by_owner(const ShardState& but) const {
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
  // Whether a loss that is forgotten concerned these slots, nobody knows. So the piece stays
  // missing and is read again.
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
  restarted_at_ = clock_;
}

// A slot on the move may have keys anywhere, so the marks of one shard cannot show that none of
// them was lost.
void ShardMarks::something_was_lost() {
  lost_at_ = ++clock_;
  restart(moving());
}

// After all of the retention became missing for all slots on the move: those that this shard owns
// can be in its mark at once, which claims nothing of them.
void ShardMarks::name_what_is_here(ShardState& shard) {
  SlotSet here = shard.look.owned - shard.look.migrating;
  for (const auto& [node, other] : shards_) {
    if (&other != &shard) here -= other.look.owned;
  }
  shard.named |= here;
  shard.partly -= here;
}

// Slots whose keys are not known to be all with an owner that names them.
SlotSet ShardMarks::moving() const {
  SlotSet moving;
  SlotSet left;
  SlotSet settled;
  for (const auto& [node, shard] : shards_) {
    moving |= shard.look.migrating | shard.look.importing;
    if (!shard.read) continue;
    moving |= shard.look.owned - shard.named;
    left |= (shard.named | shard.partly) - shard.look.owned;
    settled |= shard.named & shard.look.owned;
  }
  return moving | (left - settled);
}

void ShardMarks::review_arrivals() {
  for (auto& [node, shard] : shards_) {
    if (!shard.compared) continue;
    const SlotSet arrivals = shard.look.owned - shard.named;
    if (!shard.arrivals.covers(arrivals)) shard.arrivals_at = clock_;
    shard.arrivals = arrivals;
    name_arrivals(shard);
    make_safe(shard);
  }
}

void ShardMarks::name_arrivals(ShardState& shard) {
  // While a second master claims a slot, nobody knows which of them has its keys.
  SlotSet arrivals = shard.arrivals;
  for (const auto& [node, other] : shards_) {
    if (&other != &shard) arrivals -= other.look.owned;
  }
  // A slot may have passed through any shard on its way, and lost keys there. Only marks that are
  // read after it has arrived show that.
  if (arrivals.empty() || !all_checked_after(shard, shard.arrivals_at)) return;
  if (!all_slots_owned()) return;
  SlotSet claimed;
  for (const auto& [node, other] : shards_) claimed |= other.named | other.partly;
  if (!claimed.covers(arrivals)) {
    // The mark that named it is gone, and so may be anything else that was there.
    something_was_lost();
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

bool ShardMarks::all_checked_after(const ShardState& shard, std::uint64_t stamp) const {
  return std::ranges::all_of(shards_, [&](const auto& it) {
    const ShardState& other = it.second;
    return &other == &shard || (other.compared && other.checked_at > stamp);
  });
}

// Whatever arrives from now on in the shard's present history has lost nothing here: either no slot
// was on its way when the shard lost something, or all of the retention became missing for it, and
// the marks of all others say so by now. Before that, the next updater would find a mark that
// vouches for arrivals, and read nothing again.
void ShardMarks::make_safe(ShardState& shard) {
  if (shard.safe() || !all_checked_after(shard, shard.unsafe_since)) return;
  if (!all_slots_owned()) return;
  const bool told = std::ranges::all_of(shards_, [this, &shard](const auto& it) {
    return &it.second == &shard || it.second.told_at > restarted_at_;
  });
  if (told) shard.safe_replication = shard.look.replication;
}

bool ShardMarks::some_awaited() const {
  return std::ranges::any_of(shards_, [](const auto& it) { return it.second.awaited; });
}

bool ShardMarks::waits_for_others(const std::string& node) const {
  const auto found = shards_.find(node);
  return found != shards_.end() && found->second.compared && !found->second.begun && some_awaited();
}

std::optional<MarkValue> ShardMarks::to_write(const std::string& node, std::int64_t position) {
  const auto found = shards_.find(node);
  if (found == shards_.end() || !found->second.compared) return std::nullopt;
  ShardState& shard = found->second;
  const std::vector<int> places = places_for_mark(
      shard.look, shard.confirmed ? shard.confirmed->shard->places : std::vector<int>(), places_);
  if (places.empty() || (!shard.begun && some_awaited())) return std::nullopt;
  shard.begun = true;
  for (const auto& [other_node, other] : shards_) {
    if (&other == &shard || other.steady == 0) continue;
    const SlotSet theirs = (other.look.owned & other.confirmed->shard->slots) - shard.look.owned;
    shard.named -= theirs;
    shard.partly -= theirs;
  }
  // A mark goes on naming what it named before, until an owner's mark does. If this process ends in
  // between, the next updater knows of the slot's gaps from this mark alone.
  const SlotSet named = shard.named | shard.partly;
  MarkValue mark{.position = position};
  mark.gaps = gaps_merged(gaps_below(missing_.of(named), position), MarkValue::kGapsMax);
  const SlotSet whole = shard.named & (shard.look.owned - shard.look.migrating);
  mark.shard = {.node = node,
                .replication = shard.look.replication,
                .arrivals_safe = shard.safe(),
                .serial = next_serial(shard),
                .places = places,
                .slots = whole,
                .partly = named - whole};
  must_hold(gaps_covered(gaps_below(missing_.of(named), position), mark.gaps),
            "what is missing for a slot is in a gap of every mark that names it");
  must_hold(!shard.confirmed || mark.shard->serial > shard.confirmed->shard->serial,
            "of two marks of a shard, the newer one has the higher serial");
  must_hold(position <= next_, "a shard's mark names no offset beyond what was taken in");
  constexpr std::size_t kRemembered = 8;
  // If a copy of a forgotten attempt is found later, it counts as another updater's, and more is
  // read again than is missing. Nothing is lost by that.
  if (shard.attempts.size() == kRemembered) shard.attempts.erase(shard.attempts.begin());
  std::ranges::sort(shard.attempts.emplace_back(mark).shard->places);
  shard.writing = true;
  shard.attempted_at = ++clock_;
  return mark;
}

// The serial is above every one that was seen in any shard, so that a mark which left with its slot
// and comes back is known to be older. Where a shard has no mark now, older ones that this process
// has never seen may come back to it; so its next one is far above all that are known.
std::uint64_t ShardMarks::next_serial(const ShardState& shard) {
  constexpr int kStartBits = 32;
  if (shard.confirmed) return ++highest_serial_;
  highest_serial_ = ((highest_serial_ >> kStartBits) + 1) << kStartBits;
  return highest_serial_;
}

void ShardMarks::written(const std::string& node, std::uint64_t epoch) {
  const auto found = shards_.find(node);
  if (found == shards_.end()) return;
  ShardState& shard = found->second;
  if (!shard.writing || !shard.compared || shard.epoch != epoch) return;
  shard.confirmed = std::move(shard.attempts.back());
  shard.attempts.clear();
  shard.writing = false;
  shard.passed = {};
  shard.checked_at = shard.looked_at;
  shard.told_at = shard.attempted_at;
  ++clock_;
  // Only what is sent from now on counts. An event that was sent before may have been executed and
  // lost again before the mark was written: then the mark would vouch for it, and nothing would
  // show the loss.
  if (shard.steady == 0) shard.steady = clock_;
  review_arrivals();
}

void ShardMarks::doubtful(const std::string& node) {
  const auto found = shards_.find(node);
  // The copies must be read before the next write: what was written without an answer would make
  // each further comparison fail.
  if (found != shards_.end()) found->second.compared = false;
}

void ShardMarks::lost(const std::string& node) {
  const auto found = shards_.find(node);
  if (found == shards_.end()) return;
  found->second.steady = 0;
  // Otherwise a shard that never comes back would keep all others from their first marks.
  found->second.awaited = false;
}

bool ShardMarks::counts(const std::string& node, std::uint64_t epoch, std::uint64_t stamp) const {
  const auto found = shards_.find(node);
  if (found == shards_.end()) return false;
  const ShardState& shard = found->second;
  return shard.steady != 0 && shard.steady <= stamp && shard.epoch == epoch;
}

std::optional<ShardMarks::MissingPiece> ShardMarks::piece(std::int64_t position,
                                                          std::int64_t offsets_max) const {
  SlotSet steady;
  for (const auto& [node, shard] : shards_) {
    if (shard.steady != 0) steady |= shard.look.owned;
  }
  std::optional<MissingPiece> newest;
  for (const MissingOffsets::MissingStretch& stretch : missing_.stretches()) {
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
    const ShardState& shard = it.second;
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

bool ShardMarks::is_obsolete(const std::string& node, const MarkValue& mark) const {
  for (const std::string& owner : {node, mark.shard->node}) {
    const auto found = shards_.find(owner);
    if (found == shards_.end() || !found->second.compared || !found->second.confirmed) continue;
    const MarkedShard& newest = *found->second.confirmed->shard;
    const bool same =
        newest.node == mark.shard->node || newest.replication == mark.shard->replication;
    if (same && newest.serial > mark.shard->serial) return true;
  }
  return false;
}

bool ShardMarks::is_ours(const std::string& node, const MarkValue& mark) const {
  const auto found = shards_.find(node);
  if (found == shards_.end()) return false;
  return found->second.confirmed == mark || found->second.attempted(mark);
}

}  // namespace fcap::updater
