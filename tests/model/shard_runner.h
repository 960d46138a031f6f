#pragma once

// One partition in one updater of the model of marks per shard, and what that updater states in
// `!config`. A crash takes all of it.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "shard_config.h"
#include "shard_world.h"
#include "updater/pipeline/config_publisher.h"
#include "updater/pipeline/gap_times.h"
#include "updater/pipeline/shard_marks.h"

namespace fcap::updater::testing {

class ShardRunner {
 public:
  /// What the model is told, and asked.
  struct Around {
    std::function<int(std::int64_t)> user_of;  // of an event in the partition's log
    std::function<void(int user, std::int64_t event)> wrote_again;
    std::function<bool(unsigned percent)> fault;  // whether something fails now
    std::function<std::int64_t()> log_end;        // of the longest of all partitions' logs
    int partitions = 1;                           // of the topic
  };

  ShardRunner(ShardWorld& world, std::mt19937_64& random, int partition, std::int64_t next,
              Around around);

  using Clock = ConfigPublisher::Clock;

  void step(std::int64_t log_end, Clock::time_point now);
  /// Everything below it is done or given up.
  [[nodiscard]] std::int64_t position() const;
  [[nodiscard]] bool at_rest(std::int64_t log_end) const {
    return position() == log_end && !fill_ && marks_.settled(log_end) &&
           publisher_.trouble().empty();
  }
  [[nodiscard]] const ShardMarks& marks() const noexcept { return marks_; }

 private:
  struct Sent {
    std::int64_t event;
    int user;
    std::uint64_t stamp;
    std::optional<ShardWorld::Ack> ack = {};
    bool tried = false;
  };
  /// A piece that is being read again.
  struct Fill {
    ShardMarks::MissingPiece what;
    std::uint64_t stamp;
    std::int64_t next;
    std::vector<Sent> sent = {};
  };
  [[nodiscard]] bool chance(unsigned percent) { return random_() % 100 < percent; }
  void take(std::int64_t log_end);
  void write_live();
  void settle_live();
  void fill();
  void end_fill();
  void turn();
  void read_marks(ShardWorld::Master& master);
  void write_mark(ShardWorld::Master& master);
  void publish();
  [[nodiscard]] bool is_confirmed(const ShardWorld::Master& master) const;
  [[nodiscard]] std::optional<GapEnd> gap_end() const;
  ShardWorld::Write put(ShardWorld::Master& master, int slot, const std::string& text);

  ShardWorld& world_;
  std::mt19937_64& random_;
  int partition_;
  std::int64_t next_;
  Around around_;
  ShardMarks marks_;
  std::vector<Sent> live_;
  std::optional<Fill> fill_;
  std::map<std::string, std::map<int, std::string>> texts_;  // of marks in a shard, by slot
  std::map<std::string, std::uint64_t> looked_;  // the connection of a turn that has begun
  Clock::time_point now_{};
  bool committed_;                                     // the group has committed an offset
  bool known_ = false;                                 // as ShardedPartition::known
  SlotSet gone_;                                       // as MarkNews::gone
  std::map<std::string, Clock::time_point> compared_;  // when the shard's mark was last confirmed
  GapTimes gap_times_{std::chrono::milliseconds{0}};
  ShardConfig config_;
  ConfigPublisher publisher_;
};

}  // namespace fcap::updater::testing
