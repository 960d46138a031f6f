#include "updater/pipeline/coalescer.h"

#include <algorithm>
#include <utility>

#include <xxhash.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"

namespace fcap::updater {
namespace {

constexpr std::size_t kSlotsAtStart = 4096;

}  // namespace

void WriteSet::clear() noexcept {
  keys_.clear();
  bytes_.clear();
  writes_.clear();
  newest_ = Instant{};
}

Coalescer::Coalescer(Options options) : options_(std::move(options)), slots_(kSlotsAtStart) {}

std::string_view Coalescer::id_of(const BatchUser& user) const noexcept {
  return ledger::user_of_key(options_.key_prefix, key_of(user));
}

void Coalescer::grow_slots() {
  std::vector<UserSlot> grown(slots_.size() * 2);
  const std::size_t mask = grown.size() - 1;
  for (const UserSlot& slot : slots_) {
    if (slot.round != round_) continue;
    std::size_t at = slot.hash & mask;
    while (grown[at].round == round_) at = (at + 1) & mask;
    grown[at] = slot;
  }
  slots_.swap(grown);
}

std::uint32_t Coalescer::find_or_add_user(std::string_view user_id) {
  const std::uint64_t hash = XXH3_64bits(user_id.data(), user_id.size());
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  // Ends: the table is at most half full.
  while (slots_[at].round == round_) {
    if (slots_[at].hash == hash && id_of(users_[slots_[at].user]) == user_id) {
      return slots_[at].user;
    }
    at = (at + 1) & mask;
  }
  const auto index = static_cast<std::uint32_t>(users_.size());
  slots_[at] = {hash, round_, index};
  const auto offset = static_cast<std::uint32_t>(keys_.size());
  ledger::append_user_key(options_.key_prefix, user_id, keys_);
  users_.push_back(
      {hash, offset, static_cast<std::uint32_t>(keys_.size()) - offset, kNone, kNone, Instant{}});
  if (users_.size() * 2 > slots_.size()) grow_slots();
  return index;
}

std::size_t Coalescer::add(const events::Event& event) {
  const std::uint32_t index = find_or_add_user(event.user_id);
  BatchUser& user = users_[index];
  const auto item = static_cast<std::uint32_t>(items_.size());
  const bool erasure = event.kind == events::Event::Kind::kErasure;
  ledger::Entry entry;
  entry.time = event.time;
  if (!erasure) {
    entry.campaign = ledger::id_hash(event.campaign_id);
    entry.creative = ledger::id_hash(event.creative_id);
    entry.type = event.type;
    entry.fingerprint = ledger::fingerprint(event.event_id);
  }
  items_.push_back({entry, kNone, erasure});
  if (user.first_item == kNone) {
    user.first_item = item;
  } else {
    items_[user.last_item].next = item;
  }
  user.last_item = item;
  user.newest = std::max(user.newest, event.time);
  return index;
}

void Coalescer::gather(const BatchUser& user) {
  scratch_.clear();
  erased_until_.reset();
  for (std::uint32_t i = user.first_item; i != kNone; i = items_[i].next) {
    const UserEvent& item = items_[i];
    if (!item.erasure) {
      scratch_.push_back(item.entry);
    } else if (!erased_until_ || *erased_until_ < item.entry.time) {
      erased_until_ = item.entry.time;
    }
  }
}

void Coalescer::encode(const BatchUser& user, WriteSet& out) const {
  const auto offset = static_cast<std::uint32_t>(out.bytes_.size());
  if (!scratch_.empty()) ledger::append_entries(scratch_, out.bytes_);
  if (erased_until_) ledger::append_erased_before(*erased_until_, out.bytes_);
  out.writes_.push_back({user.hash, user.key_offset, user.key_bytes, offset,
                         static_cast<std::uint32_t>(out.bytes_.size()) - offset,
                         user.newest + options_.retention});
  out.newest_ = std::max(out.newest_, user.newest);
}

void Coalescer::clear() noexcept {
  keys_.clear();
  users_.clear();
  items_.clear();
  ++round_;
}

}  // namespace fcap::updater
