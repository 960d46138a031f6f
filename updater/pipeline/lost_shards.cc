#include "updater/pipeline/lost_shards.h"

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "redis/slot_tags.h"
#include "updater/pipeline/shard_turns.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::seconds kLookTime{2};
constexpr std::chrono::seconds kLookEvery{10};
constexpr std::chrono::seconds kLookAgain{1};  // at what was found lost

}  // namespace

// Reads the marks in all slots that may have one. It keeps itself alive until all have ended.
class LostShards::MarksLook {
 public:
  struct MarkRead final : StoreCompletion {
    void complete(const StoreOutcome& outcome) noexcept override {
      code = outcome.code;
      text = outcome.record;
      look->end_one();
    }
    MarksLook* look = nullptr;
    int slot = 0;
    StoreCode code = StoreCode::kUnavailable;
    std::string text;
  };

  static std::shared_ptr<MarksLook> make() {
    auto look = std::make_shared<MarksLook>();
    const SlotSet& slots = ShardTurns::mark_slots();
    look->reads_ = std::vector<MarkRead>(slots.size());
    for (std::size_t i = 0; i < look->reads_.size(); ++i) {
      look->reads_[i].look = look.get();
      look->reads_[i].slot = slots.at(i);
    }
    look->open_ = look->reads_.size();
    look->self_ = look;
    return look;
  }

  [[nodiscard]] bool ended() const noexcept { return open_.load(std::memory_order_acquire) == 0; }
  [[nodiscard]] std::span<MarkRead> reads() noexcept { return reads_; }
  [[nodiscard]] std::span<const MarkRead> reads() const noexcept { return reads_; }

 private:
  void end_one() noexcept {
    // Before the last one counts: afterwards nothing else may keep this alive.
    const std::shared_ptr<MarksLook> self = self_;
    if (open_.fetch_sub(1, std::memory_order_acq_rel) == 1) self_.reset();
  }

  std::vector<MarkRead> reads_;
  std::atomic<std::size_t> open_{0};
  std::shared_ptr<MarksLook> self_;
};

LostShards::LostShards(Store& store, std::string_view key_prefix, std::string_view group_id,
                       std::string_view topic)
    : store_(&store), key_prefix_(key_prefix), whose_(fmt::format("{}:{}:0", group_id, topic)) {}

LostShards::~LostShards() = default;

SlotSet LostShards::tick(Clock::time_point now, std::uint64_t connections) {
  SlotSet lost;
  if (look_) {
    if (!look_->ended()) return {};
    lost = take(*std::exchange(look_, nullptr), now);
  }
  if (connections != connections_) {
    connections_ = connections;
    told_ = {};
    look_at_ = now;
  }
  if (now < look_at_) return lost;
  look_at_ = now + kLookEvery;
  look_ = MarksLook::make();
  for (MarksLook::MarkRead& read : look_->reads()) {
    const std::string& tag = redis::tag_of_slot(static_cast<std::uint16_t>(read.slot));
    store_->get(tagged_mark_key(key_prefix_, tag, whose_), now + kLookTime, read);
  }
  return lost;
}

SlotSet LostShards::take(const MarksLook& look, Clock::time_point now) {
  const SlotSet before = std::exchange(suspected_, {});
  std::vector<MarkValue> found;
  for (const MarksLook::MarkRead& read : look.reads()) {
    if (read.code == StoreCode::kNotFound) continue;
    auto mark = read.code == StoreCode::kOk ? decode_mark(read.text) : std::nullopt;
    if (!mark || !mark->shard || mark->shard->places.empty()) return {};
    found.push_back(std::move(*mark));
  }
  suspected_ = without_mark(found);
  SlotSet lost = (suspected_ & before) - told_;
  told_ |= lost;
  if (!told_.covers(suspected_)) look_at_ = std::min(look_at_, now + kLookAgain);
  return lost;
}

SlotSet LostShards::without_mark(std::span<const MarkValue> found) {
  if (found.empty()) return {};
  std::bitset<SlotSet::kSlots> there;
  for (const MarkValue& mark : found) {
    there.set(static_cast<std::size_t>(mark.shard->places.front()));
  }
  SlotSet lost = SlotSet::all();
  for (const MarkValue& mark : found) {
    const bool is_whole = std::ranges::all_of(
        mark.shard->places, [&](int place) { return there.test(static_cast<std::size_t>(place)); });
    if (is_whole) lost -= mark.shard->slots | mark.shard->partly;
  }
  return lost;
}

}  // namespace fcap::updater
