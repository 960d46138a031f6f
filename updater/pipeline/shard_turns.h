#pragma once

#include <bitset>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcap/log.h>
#include <fcap/time.h>

#include "updater/metrics/metrics.h"
#include "updater/pipeline/node_call.h"
#include "updater/pipeline/node_look.h"
#include "updater/pipeline/shard_marks.h"
#include "updater/pipeline/shard_port.h"

namespace fcap::updater {

/// The marks of one partition in all shards: what ShardMarks decides, and where they are kept.
struct ShardedPartition {
  using Clock = std::chrono::steady_clock;
  /// In one shard, over the connection on which they were read.
  struct MarksInShard {
    std::map<int, std::string> texts = {};  ///< by slot: every mark of the partition in its slots
    std::uint64_t look = 0;                 ///< after which they were read
    Clock::time_point due{};
    Clock::time_point begun{};     ///< the last write of its marks
    Clock::time_point compared{};  ///< the last write that was confirmed
    /// The question whether the log of `asked` is the one that is being read; 0: none.
    std::uint64_t ticket = 0;
    std::optional<MarkValue> asked = {};  ///< a mark of the shard that was found
    std::optional<bool> usable = {};      ///< the answer; used for one mark only
    std::vector<LogPoint> shown_by = {};  ///< LogVerdict::shown_by
    bool unanswered = false;              ///< asked, and Kafka has not been able to say yet
  };

  ShardedPartition(ShardMarks m, std::string key)
      : marks(std::move(m)), key_behind(std::move(key)) {}

  ShardMarks marks;
  std::string key_behind;     ///< the mark's key, behind its tag
  std::int64_t position = 0;  ///< everything below it is done or given up
  LogIdentity log;            ///< what a mark of this position says of the log
  std::map<std::string, MarksInShard> places = {};  ///< by node
  bool known = false;         ///< the marks of all shards were read, at one time or another
  bool committed = false;     ///< the group had committed an offset of it
  bool no_mark_said = false;  ///< that something else stands at a mark's key
  /// Since when Kafka has not said whether the log of some mark is the one that is being read.
  std::optional<Clock::time_point> asking_since = {};
  /// Kafka's answer has taken too long (the partition may have no leader): the other partitions are
  /// read without this one, and shards are judged without its marks, until all of them are
  /// confirmed again.
  bool left_behind = false;
};

/// Asks the masters of a cluster what they are, and reads and writes the marks of partitions in
/// their shards. Each shard has one turn after the other: a look at what it owns, the marks that
/// must be read, and the marks that are due, all of it over one connection. A turn that fails is
/// begun again; what it has found out by then is forgotten.
///
/// The copies of a mark (copies_of()) are written one after the other, each by compare-and-set and
/// only if the one before it was written. Then copies of older marks are deleted.
///
/// Marks are kept only in slots whose number divided by kPlaceEvery leaves kPlaceEvery - 1, so that
/// reading all of a shard's marks takes few commands. A shard without such a slot has no mark yet.
///
/// Thread safety: one thread. Never blocks.
class ShardTurns {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kPlaceEvery = 16;

  struct Options {
    std::string key_prefix;
    std::chrono::milliseconds deadline{1000};
    /// Between two turns with a shard while marks move, and while they do not.
    std::chrono::milliseconds interval{100};
    std::chrono::milliseconds idle_interval{1000};
    /// A mark expires so much later than the present.
    std::chrono::milliseconds marks_live{0};
    /// A shard whose marks are not confirmed for so long is away, and the others go on without it.
    /// Likewise a partition of whose log Kafka says nothing for so long is left behind, and the
    /// other partitions go on without it.
    std::chrono::milliseconds patience{2000};
  };
  /// Asks whether the log of a mark is the one that is being read; judged() has the answer. Returns
  /// the question's number, or 0 where the answer is not needed.
  using AskLog = std::function<std::uint64_t(std::int32_t, const MarkValue&)>;

  ShardTurns(std::shared_ptr<ShardPort> shards, Options options, AskLog ask_log, Metrics& metrics,
             LogCallback log);

  /// `marks` are in slots of mark_slots().
  ShardedPartition& add(std::int32_t id, ShardMarks marks, std::string key_behind);
  void remove(std::int32_t id);
  [[nodiscard]] ShardedPartition* find(std::int32_t id);

  [[nodiscard]] static const SlotSet& mark_slots();

  void tick(Clock::time_point now, Instant wall_now);
  /// Marks are written at once in the next tick.
  void hurry() noexcept { hurry_ = true; }
  /// `usable`: the marks found may be believed. False: they are about another log, or prove
  /// nothing. nullopt: this could not be found out, and is asked again. `shown_by`:
  /// LogVerdict::shown_by. Returns false if nobody waits for this answer any more.
  [[nodiscard]] bool judged(std::int32_t id, std::uint64_t ticket, std::optional<bool> usable,
                            std::vector<LogPoint> shown_by = {});

  /// Every shard's mark of the partition is confirmed on the present connection, or the shard is
  /// away; and some shard is not away.
  [[nodiscard]] bool ready(const ShardedPartition& partition) const;
  /// Whether the marks of every shard that has slots were read, so that it is known what it lacks.
  [[nodiscard]] bool all_read(const ShardedPartition& partition) const;
  /// ready(), and no shard that has slots is away. One whose marks are not confirmed on the present
  /// connection may have lost something since they were read.
  [[nodiscard]] bool all_known(const ShardedPartition& partition) const;
  /// Whether the mark of every shard that has slots, also of one that is away, says all that is
  /// missing for its users, and is confirmed on the present connection.
  [[nodiscard]] bool told(const ShardedPartition& partition) const;
  /// The slots for whose users it is not known what is missing. These are all slots until the marks
  /// of all shards were read once (ShardedPartition::known); afterwards those of shards that are
  /// away, or whose marks were not read over the present connection.
  [[nodiscard]] SlotSet unknown(const ShardedPartition& partition) const;
  /// Whether a shard that is not away has marks that are still to be confirmed, or no shard with
  /// slots is left to read for.
  [[nodiscard]] bool waiting() const;
  /// Whether every shard that is not away has a mark of the partition's position that says what is
  /// missing, and none has one with gaps that are filled.
  [[nodiscard]] bool settled(const ShardedPartition& partition) const;
  /// Whether the shard of the slot is away, or nobody has the slot.
  [[nodiscard]] bool away(std::uint16_t slot) const noexcept { return away_.test(slot); }
  /// The slots of the shard that has this one.
  [[nodiscard]] SlotSet slots_with(std::uint16_t slot) const;
  /// Whose connection this is, as StoreOutcome::connection_epoch names it; null: nobody's.
  [[nodiscard]] const std::string* node_of(std::uint64_t epoch) const noexcept;
  /// Which shards are away, and why: a line each. Empty: none. A master without slots that cannot
  /// be asked is among them: keys may be there.
  [[nodiscard]] std::string trouble() const;
  [[nodiscard]] std::size_t shards_away() const;
  /// When the last writes began by which every shard that has slots and is not away has confirmed
  /// its mark on the present connection: the earliest of them.
  [[nodiscard]] Clock::time_point compared(const ShardedPartition& partition) const;
  /// The slots of shards in which marks are gone that were there, since the last call.
  [[nodiscard]] SlotSet take_marks_gone() { return std::exchange(marks_gone_, {}); }

 private:
  enum class TurnPhase : std::uint8_t { kIdle, kConnecting, kLooking, kReading, kWriting };
  /// What one command of a call is about.
  struct MarkCommand {
    std::vector<std::int32_t> partitions = {};
    int slot = -1;
    std::string text = {};   // to be written; empty: what is there is deleted
    bool is_last = false;    // of a write: the last copy of its mark
    bool migrating = false;  // of a read
  };
  struct ShardInTurn {
    std::string address;
    std::uint16_t number = 0;
    SlotSet mapped;                            // its slots by the client's map
    std::bitset<SlotSet::kSlots> mapped_bits;  // the same
    NodeLook look;
    std::uint64_t epoch = 0;  // of the look; 0: not looked yet
    TurnPhase phase = TurnPhase::kIdle;
    std::shared_ptr<NodeCall> call;
    std::uint64_t call_epoch = 0;
    std::vector<MarkCommand> jobs;
    std::vector<MarkCommand> later;  // copies that are written when those before them were
    std::int64_t expire_at_ms = 0;
    bool doubts = false;  // some copy was not written in this turn
    bool knows_script = false;
    Clock::time_point due{};
    std::uint32_t failures = 0;
    std::string why;      // of the last failure
    bool steady = false;  // the marks of all witnesses() are confirmed over the present connection
    bool away = false;    // unsteady for Options::patience: the others go on without it
    Clock::time_point steady_since{};
    Clock::time_point unsteady_since{};
  };
  using Shards = std::map<std::string, ShardInTurn>;

  void follow_nodes(Clock::time_point now);
  [[nodiscard]] std::map<std::string, ShardInTurn> nodes_now() const;
  void tell_nodes(ShardMarks& marks) const;
  void judge_shards(Clock::time_point now);
  void judge_partition(ShardedPartition& partition, Clock::time_point now) const;
  [[nodiscard]] bool waits_for_answers(const std::string& node) const;
  [[nodiscard]] bool steady(const ShardedPartition& partition, const std::string& node,
                            const ShardInTurn& shard) const;
  [[nodiscard]] std::vector<const ShardedPartition*> witnesses() const;
  void tick_shard(const std::string& node, ShardInTurn& shard, Clock::time_point now,
                  Instant wall_now);
  void take_answers(const std::string& node, ShardInTurn& shard, const NodeCall& call,
                    Clock::time_point now, Instant wall_now);
  void lose(const std::string& node, ShardInTurn& shard, Clock::time_point now, std::string why);
  void end_turn(ShardInTurn& shard, Clock::time_point now);
  void begin_look(ShardInTurn& shard);
  void take_look(const std::string& node, ShardInTurn& shard, const NodeCall& call,
                 Clock::time_point now, Instant wall_now);
  void begin_read(const std::string& node, ShardInTurn& shard, Clock::time_point now,
                  Instant wall_now);
  bool take_read(const std::string& node, ShardInTurn& shard, const NodeCall& call);
  void settle_read(std::int32_t id, ShardedPartition& p, const std::string& node,
                   const ShardInTurn& shard);
  void accept(std::int32_t id, ShardedPartition& p, const std::string& node,
              const ShardInTurn& shard, const std::vector<MarkValue>& found);
  void begin_write(const std::string& node, ShardInTurn& shard, Clock::time_point now,
                   Instant wall_now);
  void send_writes(ShardInTurn& shard);
  void add_write(ShardInTurn& shard, const ShardedPartition& p, const MarkCommand& job);
  static bool take_copy(ShardInTurn& shard, ShardedPartition::MarksInShard& place,
                        const MarkCommand& job, const NodeCall::NodeAnswer& answer, bool answered);
  static void remove_obsolete(std::int32_t id, const ShardedPartition& p, const std::string& node,
                              ShardInTurn& shard);
  void take_written(const std::string& node, ShardInTurn& shard, const NodeCall& call);
  [[nodiscard]] bool is_due(const ShardedPartition& p, const std::string& node,
                            const ShardInTurn& shard, Clock::time_point now) const;
  [[nodiscard]] std::string key(int slot, const ShardedPartition& p) const;
  void report(LogLevel level, const std::string& text) const;

  std::shared_ptr<ShardPort> shard_port_;
  const Options options_;
  const AskLog ask_log_;
  Metrics* metrics_;
  const LogCallback log_;
  Shards shards_;
  std::map<std::int32_t, ShardedPartition> partitions_;
  std::bitset<SlotSet::kSlots> away_;
  Clock::time_point nodes_due_{};
  bool hurry_ = false;
  SlotSet marks_gone_;
};

}  // namespace fcap::updater
