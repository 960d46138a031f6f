#pragma once

// The write path against servers that lose data in every way there is, in one thread and from one
// seed: whatever happened, in the end every event of the logs is in the store, and nothing that was
// erased is. Small losses are read again in line, others become gaps, which are filled while
// reading goes on, through crashes, further losses, changes of the log, and of who reads it. And at
// every step, `!config` says of each event that went with an emptied Redis that it may be missing,
// until it is back or is about to be read again in line.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checker_view.h"
#include "events/event_decoder.h"
#include "ledger/ledger.h"
#include "model_shards.h"
#include "tests/unit/updater/support/fault_store.h"
#include "updater/pipeline/batch_writer.h"
#include "updater/pipeline/config_publisher.h"
#include "updater/pipeline/partition_set.h"

namespace fcap::updater::testing {

struct ModelOptions {
  int shards = 0;  // masters of a cluster; 0: one server
  std::optional<std::int64_t> gap_min = {};
  unsigned trouble_of_1000 = 18;  // how often something happens to Redis, the logs or a process
  bool other_logs = true;         // logs are recreated and truncated
  int partitions = 1;
  int processes = 1;              // of more than one some are zombies now and then
  bool slow_or_refusing = false;  // Redis, for a while: all operations, or one kind of them
  bool leaders_lost = false;      // by single partitions, for a while
  bool owners_lost = false;       // partitions have no owner for a while, or Kafka is away
  bool partitions_added = false;
  bool other_updater = false;  // of another topic, beside them
};

class Model {
 public:
  Model(std::uint64_t seed, const ModelOptions& options);
  ~Model();

  void step();
  /// No more faults; everything comes to rest.
  void heal();

  [[nodiscard]] std::size_t missing() const;
  /// Events that are there though the log asks for them to be forgotten.
  [[nodiscard]] std::size_t not_erased() const;
  /// Records that would go before their events do. Only those with events that are still in a log:
  /// if a snapshot or a crash has kept a record from its expiry, only the sweep gives it one when
  /// nothing of its user is read again.
  [[nodiscard]] std::size_t expiring_early() const;
  [[nodiscard]] bool came_to_rest() const;
  /// Whether at some step a Checker took counts for complete that lacked events.
  [[nodiscard]] bool called_complete_too_early() const noexcept { return too_early_; }
  /// What was done and said last.
  [[nodiscard]] std::string story() const;

  [[nodiscard]] std::uint64_t read_in_gaps() const { return metrics_.gap_messages.value(); }
  [[nodiscard]] std::uint64_t expiries_left() const { return store_.expiries_left(); }
  [[nodiscard]] std::uint64_t rewinds() const { return metrics_.rewinds.value(); }
  /// How often a partition went to another process.
  [[nodiscard]] std::uint64_t rebalances() const { return rebalances_; }
  /// How often Redis became slow, or began to refuse a kind of operation.
  [[nodiscard]] std::uint64_t slow_or_refusing_phases() const { return slow_or_refusing_phases_; }
  /// How often something was read while another partition of the process waited.
  [[nodiscard]] std::uint64_t read_beside_waiting() const { return read_beside_waiting_; }
  /// All that were ever in the logs.
  [[nodiscard]] std::size_t events() const { return produced_; }
  /// How many were lost while a Checker looked, by an emptied Redis, and of those how many while
  /// their partition had no owner.
  [[nodiscard]] std::uint64_t events_lost() const { return events_lost_; }
  [[nodiscard]] std::uint64_t lost_without_owner() const { return lost_without_owner_; }

 private:
  class Process;
  struct LoggedEvent {
    std::string user;
    std::string id = {};  // empty: an erasure
    Instant time = {};
    std::string payload = {};
  };
  /// A partition's log, and what the group knows of it.
  struct Log {
    static constexpr std::int64_t kStart = 5;
    std::vector<LoggedEvent> events;
    int made = 1;  // how many there were
    std::int64_t committed = kafka::PartitionOffset::kNone;
    int owner = 0;        // the process that the group has assigned it to, or kNobody
    int unowned_for = 0;  // steps
    bool is_led = true;   // else Kafka neither delivers nor tells anything of it

    [[nodiscard]] std::int64_t end() const {
      return kStart + static_cast<std::int64_t>(events.size());
    }
    [[nodiscard]] const LoggedEvent& at(std::int64_t offset) const {
      return events[static_cast<std::size_t>(offset - kStart)];
    }
  };
  static constexpr int kNobody = -1;
  /// The offsets of a log's events that a Redis held which was emptied, until they are back.
  struct Lost {
    int made = 0;  // as Log::made
    std::set<std::int64_t> offsets = {};
  };
  /// What a Redis holds, and what it had lost when it was copied.
  struct Copy {
    FaultStore::Records records = {};
    std::vector<Lost> lost = {};
  };
  using Fault = FaultStore::Fault;
  using Fingerprints = std::map<std::string, std::set<std::uint32_t>>;

  [[nodiscard]] bool chance(unsigned percent) { return random_() % 100 < percent; }
  [[nodiscard]] int any(int count) {
    return static_cast<int>(random_() % static_cast<unsigned>(count));
  }
  [[nodiscard]] Log& log_of(std::int32_t partition) {
    return logs_[static_cast<std::size_t>(partition)];
  }
  void say(std::string_view what);
  [[nodiscard]] Fingerprints stored() const;
  /// Grows with each connection to Redis.
  [[nodiscard]] std::uint64_t connections() const {
    return shards_ ? shards_->connections() : epoch_;
  }
  [[nodiscard]] std::uint64_t epoch_of_config() const {
    return shards_ ? shards_->epoch_of("p:!config") : epoch_;
  }
  [[nodiscard]] bool is_in(std::string_view key, int shard) const {
    return !shards_ || shards_->shard_of(key) == shard;
  }
  [[nodiscard]] Copy copy_of(int shard) const;
  [[nodiscard]] int some_shard() { return shards_ ? any(shards_->count()) : 0; }
  [[nodiscard]] std::string marks_in(const FaultStore::Records& records) const;
  Fault some_fault();
  [[nodiscard]] int log_count() const { return static_cast<int>(logs_.size()); }
  /// As MarkNews::partitions.
  [[nodiscard]] std::int32_t known_partitions() const { return kafka_away_ ? 0 : log_count(); }
  [[nodiscard]] Instant wall_now() const;
  [[nodiscard]] Instant after_all_events() const;

  void produce();
  void produce_into(int partition);
  void some_trouble();
  void recreate_logs();
  void truncate_log();
  void run_some_operations();
  void break_operations();
  void empty_redis();
  void restore(const Copy& copy, int shard);
  void note_lost(const Copy& copy);
  void lose_contact();
  void restart_from_snapshot();
  void fail_over();
  void crash();
  void lose_owners();
  void add_partition();
  void rebalance();
  void slow_down_or_refuse();
  void lose_leader();
  void end_slowness();
  void give_owners();
  void start_process(int process);
  void take_over(int process, std::vector<kafka::PartitionOffset> partitions);
  void compact_one();
  void turn_other_updater();
  void look_at_statement();
  void drop_what_is_read_in_line(int log);
  [[nodiscard]] bool is_back(const LoggedEvent& event);

  const ModelOptions options_;
  std::mt19937_64 random_;
  FaultStore store_;
  std::unique_ptr<events::EventDecoder> decoder_ = events::make_json_event_decoder();
  std::vector<Copy> snapshots_;  // by shard; one server is one shard here
  std::vector<Copy> replicas_;
  std::uint64_t epoch_ = 1;              // of the connections to one server
  std::shared_ptr<ModelShards> shards_;  // of a cluster
  std::vector<Log> logs_;
  std::vector<Lost> lost_;                 // by log
  std::map<std::string, Instant> erased_;  // by what was ever in a log
  std::size_t produced_ = 0;
  std::uint64_t rebalances_ = 0;
  std::uint64_t slow_or_refusing_phases_ = 0;
  std::uint64_t read_beside_waiting_ = 0;
  std::deque<std::string> story_;
  Metrics metrics_;
  const BatchWriter::Clock::time_point began_ = BatchWriter::Clock::now();
  BatchWriter::Clock::time_point now_ = began_;
  bool faults_ = true;
  bool slow_ = false;
  int slow_or_refusing_for_ = 0;  // steps
  bool kafka_away_ = false;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<int> down_for_;  // steps, by process
  std::unique_ptr<ConfigPublisher> other_updater_;
  ConfigPublisher::Clock::time_point other_lacked_{};  // when it last stated a loss
  ConfigPublisher::Clock::time_point other_compared_{};
  ConfigPublisher::Clock::time_point emptied_{};
  CheckerView checker_;
  ledger::Ledger found_;
  bool too_early_ = false;
  std::uint64_t events_lost_ = 0;
  std::uint64_t lost_without_owner_ = 0;
  std::set<std::pair<int, int>> zombies_;  // processes, and partitions that are another's by now
};

}  // namespace fcap::updater::testing
