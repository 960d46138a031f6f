#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "ledger/user_key.h"
#include "redis/redirect.h"
#include "updater/compaction/slot_listing.h"
#include "updater/compaction/sweep_keys.h"

namespace fcap::updater {
namespace {

using redis::ClusterShard;
using State = SlotListing::State;

constexpr std::size_t kSlotsAtOnce = 16;
// Neighbours are far from each other in the order in which slots are listed, so that all nodes work
// at any time, and one that does not answer does not keep the others' slots waiting. Odd, so that
// every slot comes once.
constexpr std::size_t kStride = 10'127;

class ClusterKeys final : public SweepKeys {
 public:
  ClusterKeys(redis::Client& client, const Options& options)
      : client_(client), options_(options), probes_(redis::kSlotCount) {
    std::size_t missing = probes_.size();
    for (std::uint64_t tag = 0; missing != 0; ++tag) {
      std::string key = options_.key_prefix + ":!sweep:{" + std::to_string(tag) + "}";
      std::string& probe = probes_[redis::slot_of(key)];
      if (!probe.empty()) continue;
      probe = std::move(key);
      --missing;
    }
    for (std::size_t i = 0; i < redis::kSlotCount; ++i) {
      slots_.push_back(static_cast<std::uint16_t>(i * kStride % redis::kSlotCount));
    }
  }

  [[nodiscard]] std::vector<std::string> masters() const override {
    std::vector<std::string> keys;
    for (const ClusterShard& shard : client_.shards()) {
      keys.push_back(probes_[shard.slots.front().first]);
    }
    return keys;
  }

  [[nodiscard]] Status next(std::vector<std::string>& keys) override;
  [[nodiscard]] bool over() const override { return slots_.empty(); }

 private:
  // Slots on the move have their keys in two places.
  using Parts = std::vector<SlotListing*>;
  void list_others(const Parts& parts);
  void list_owners_again(const Parts& parts);
  [[nodiscard]] static std::optional<ClusterShard> other_of(
      const SlotListing& listing, const std::vector<ClusterShard>& shards);
  void append_user_keys(SlotListing& listing, std::vector<std::string>& keys) const;

  redis::Client& client_;
  const Options options_;
  std::vector<std::string> probes_;  // by slot
  std::deque<std::uint16_t> slots_;  // not listed yet
};

Status ClusterKeys::next(std::vector<std::string>& keys) {
  keys.clear();
  std::array<SlotListing, kSlotsAtOnce> all;
  const std::span listings(all.data(), std::min(all.size(), slots_.size()));
  std::vector<SlotListing*> asked;
  for (SlotListing& listing : listings) {
    listing.ask_owner(slots_.front(), probes_[slots_.front()]);
    slots_.pop_front();
    asked.push_back(&listing);
  }
  list_slots(client_, asked, options_.deadline);
  Parts parts;
  for (SlotListing* const listing : asked) {
    if (listing->state == State::kPart) parts.push_back(listing);
  }
  if (!parts.empty()) {
    list_others(parts);
    list_owners_again(parts);
  }
  Status failed;
  bool any = false;
  for (SlotListing& listing : listings) {
    if (listing.state != State::kFailed) {
      append_user_keys(listing, keys);
      any = true;
      continue;
    }
    slots_.push_back(listing.listed_slot);
    failed = Status::error(
        StatusCode::kUnavailable,
        "slot " + std::to_string(listing.listed_slot) + " cannot be listed: " + listing.text, true);
  }
  return any ? Status{} : failed;
}

// The shard to which the keys are on their way.
std::optional<ClusterShard> ClusterKeys::other_of(const SlotListing& listing,
                                                  const std::vector<ClusterShard>& shards) {
  const auto redirect = redis::read_redirect(listing.text);
  const auto serves = [&listing](const ClusterShard& shard) {
    return std::ranges::any_of(shard.slots, [&listing](const redis::SlotRange& range) {
      return range.first <= listing.listed_slot && listing.listed_slot <= range.last;
    });
  };
  const auto owner = std::ranges::find_if(shards, serves);
  if (!redirect || owner == shards.end()) return std::nullopt;
  const auto answered = redis::parse_address(owner->address);
  if (!answered.ok()) return std::nullopt;
  const std::string address = redis::address_of(*redirect, answered.value()).text;
  const auto other = std::ranges::find(shards, address, &ClusterShard::address);
  return other == shards.end() ? std::nullopt : std::optional(*other);
}

void ClusterKeys::list_others(const Parts& parts) {
  const std::vector<ClusterShard> shards = client_.shards();
  std::vector<SlotListing*> asked;
  for (SlotListing* const listing : parts) {
    if (const auto other = other_of(*listing, shards)) {
      listing->ask_other(listing->listed_slot, other->slots.front().first, other->connection_epoch);
      asked.push_back(listing);
    } else {
      // A new node: it can be asked once it serves its first slot.
      listing->state = State::kFailed;
      listing->text =
          "its keys are being moved to a node that serves no slot yet: " + listing->text;
    }
  }
  list_slots(client_, asked, options_.deadline);
}

void ClusterKeys::list_owners_again(const Parts& parts) {
  std::vector<SlotListing*> asked;
  std::vector<std::string> redirects;
  for (SlotListing* const listing : parts) {
    if (listing->state == State::kFailed) continue;
    redirects.push_back(std::exchange(listing->text, {}));
    listing->ask_owner(listing->listed_slot, probes_[listing->listed_slot]);
    asked.push_back(listing);
  }
  list_slots(client_, asked, options_.deadline);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i]->state != State::kPart || asked[i]->text == redirects[i]) continue;
    asked[i]->state = State::kFailed;
  }
}

void ClusterKeys::append_user_keys(SlotListing& listing, std::vector<std::string>& keys) const {
  const std::string begins = ledger::user_key_begin(options_.key_prefix);
  std::erase_if(listing.keys, [&begins](const std::string& key) {
    return !std::string_view(key).starts_with(begins);
  });
  std::ranges::sort(listing.keys);
  listing.keys.erase(std::unique(listing.keys.begin(), listing.keys.end()), listing.keys.end());
  std::ranges::move(listing.keys, std::back_inserter(keys));
}

}  // namespace

std::unique_ptr<SweepKeys> make_cluster_keys(redis::Client& client,
                                             const SweepKeys::Options& options) {
  return std::make_unique<ClusterKeys>(client, options);
}

}  // namespace fcap::updater
