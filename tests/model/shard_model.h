#pragma once

// Marks per shard against clusters that lose data in every way there is, from one seed: whatever
// happened, in the end every event of the logs is with the owner of its user's slot. And once
// `!config` says of an event that went with an emptied master that it may be missing, it says so
// until the event is back; where it was `!config`'s own master, it says so at once.
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "checker_view.h"
#include "shard_runner.h"
#include "shard_world.h"

namespace fcap::updater::testing {

struct ShardModelOptions {
  int masters = 3;
  int partitions = 1;
  int steps = 500;
  unsigned trouble_of_1000 = 30;
  bool moves = true;        // slots migrate
  bool losses = true;       // masters fail over, are emptied, are restored
  bool flickers = true;     // masters cannot be reached for a while
  bool crashes = true;      // updaters crash and are down for a while
  bool zombies = false;     // partitions go to another updater before the first one knows
  bool first_only = false;  // only the first master loses anything
  bool first_away = false;  // the first master is away, and all else goes on
  bool adds_masters = false;
  bool faults = true;  // single operations fail
};

class ShardModel {
 public:
  ShardModel(std::uint64_t seed, const ShardModelOptions& options);

  void run();
  /// No more faults and no more events; but the first master stays away.
  void settle_without_the_first();
  /// Whether all other shards' marks have reached the end of the logs.
  [[nodiscard]] bool others_marked() const;
  /// No more faults; everything comes to rest.
  void heal();

  [[nodiscard]] bool came_to_rest() const;
  /// Whether a mark claimed an event that its shard lacked.
  [[nodiscard]] bool false_claim() const noexcept { return false_claim_; }
  /// Whether at some step a Checker took counts for complete that lacked events.
  [[nodiscard]] bool called_complete_too_early() const noexcept { return too_early_; }
  /// How many events were lost, and said to be missing.
  [[nodiscard]] std::size_t events_stated() const noexcept { return events_stated_; }
  /// Events that their users' owners lack, of users that `of` selects.
  [[nodiscard]] std::size_t missing(const SlotSet& of = ShardWorld::all()) const;
  /// Slots that had to be read again from the start of retention, once there were marks.
  [[nodiscard]] std::size_t slots_restarted() const noexcept { return slots_restarted_; }
  /// The slots of users to whom something was written again.
  [[nodiscard]] const SlotSet& written_again() const noexcept { return written_again_; }
  /// Events that were written again though the lower mark of any two shards claims them.
  [[nodiscard]] std::size_t too_far() const noexcept { return too_far_; }
  [[nodiscard]] const SlotSet& of_first() const noexcept { return of_first_; }
  [[nodiscard]] std::size_t events() const noexcept;
  [[nodiscard]] std::size_t moved() const noexcept { return world_.moved(); }
  [[nodiscard]] std::size_t losses() const noexcept { return losses_; }
  [[nodiscard]] std::size_t rewritten() const noexcept { return rewritten_; }
  [[nodiscard]] std::string story() const;

 private:
  struct Partition {
    std::vector<int> log;  // users
    std::int64_t committed = 0;
    int down_for = 0;
    std::int64_t floor = 0;  // no event below it should be written again
    std::unique_ptr<ShardRunner> runner;
    std::unique_ptr<ShardRunner> zombie;
  };

  [[nodiscard]] bool chance(unsigned percent) { return random_() % 100 < percent; }
  [[nodiscard]] int any(std::size_t count) { return static_cast<int>(random_() % count); }
  void say(std::string_view what);
  void step();
  void produce();
  void look_for_false_claims();
  void note_losses(bool emptied, const ShardWorld::Data& before, const SlotSet& owned);
  void look_at_statement();
  void start(Partition& partition);
  void stop(Partition& partition);
  void some_trouble();
  void trouble_with_a_master();
  void move_slots();
  [[nodiscard]] bool holds_the_only_copy(int slot) const;
  [[nodiscard]] std::int64_t end_of(const Partition& p) const {
    return static_cast<std::int64_t>(p.log.size());
  }

  const ShardModelOptions options_;
  std::mt19937_64 random_;
  ShardWorld world_;
  std::vector<Partition> partitions_;
  SlotSet of_first_;
  SlotSet written_again_;
  std::size_t slots_restarted_ = 0;
  std::size_t too_far_ = 0;
  std::size_t losses_ = 0;
  std::size_t rewritten_ = 0;
  bool faults_ = false;
  bool begun_ = false;
  bool false_claim_ = false;
  ShardRunner::Clock::time_point now_ = ShardRunner::Clock::now();
  CheckerView checker_{ShardConfig::kRetention};
  /// By user, the events that an emptied master held, until they are back, and those of them that
  /// were said to be missing.
  std::map<int, ShardWorld::Events> lost_;
  std::map<int, ShardWorld::Events> stated_;
  std::map<int, std::optional<Instant>> stated_before_;  // CheckerView::lost_before(), by user
  std::size_t events_stated_ = 0;
  bool too_early_ = false;
  int steps_ = 0;
  std::deque<std::string> story_;
};

}  // namespace fcap::updater::testing
