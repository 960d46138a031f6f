#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/store.h>

#include "kafka/partition_lists.h"
#include "updater/pipeline/coalescer.h"
#include "updater/pipeline/known_records.h"
#include "updater/pipeline/offset_tracker.h"

namespace fcap::updater {

class Batch;

/// Is notified when the last outstanding operation of a batch has ended. From any thread.
class RoundListener {
 public:
  virtual void round_over(Batch& batch) noexcept = 0;

 protected:
  ~RoundListener() = default;
};

/// What messages hold that are to be written, besides the users' entries.
struct BatchMessages {
  /// An erasure, and the message that requested it.
  struct Erasure {
    Instant until;
    std::int32_t partition;
    std::int64_t offset;
  };

  std::size_t messages = 0;
  std::size_t events = 0;  ///< not counting erasures
  std::vector<Erasure> erasures;
  /// For each user, and so for each write, the position of its first message.
  std::vector<kafka::PartitionOffset> positions;

  /// An event of the message at `at`, which goes to its user's in `users`.
  void take(const events::Event& event, const kafka::PartitionOffset& at, Coalescer& users);
  void clear() noexcept;
};

/// Messages that are being written: their writes, their offsets, and which writes are done. A round
/// submits every write that is not done yet; if its round leaves some undone, the batch gets
/// another round. Reused from batch to batch with its buffers.
///
/// Thread safety: the main thread fills and reads it between rounds; during a round only
/// completions touch it.
class Batch final : public BatchMessages, private StoreListCompletion {
 public:
  /// Which offsets of a partition the batch holds. If the partition is in a later generation (after
  /// a rewind or a rebalance), they no longer count.
  struct BatchOffsets {
    std::int32_t partition;
    std::uint64_t generation;
    OffsetTracker::Ticket ticket;
    // In a cluster: its offsets, and ShardMarks::stamp() before anything of it was sent.
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::uint64_t stamp = 0;
  };

  explicit Batch(RoundListener& listener) noexcept : listener_(&listener) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  WriteSet writes;
  std::vector<BatchOffsets> ranges;
  /// The broker's timestamp of the first message; below 0: it has none.
  std::int64_t first_message_ms = -1;
  /// Not 0: the batch fills a gap and belongs to this piece of work; then it has no ranges.
  std::uint64_t gap_ticket = 0;
  /// For each write, whether the record was found to have it already: then only the expiry is set,
  /// unless the record is gone by then. Empty: no record was.
  std::vector<bool> found_there;

  /// A write that Redis will never accept, although it accepts the rest of the batch.
  struct Refused {
    std::size_t write;
    std::string why;  ///< the server's words
  };

  struct Round {
    Store::Deadline deadline;
    /// Added to the expiries, so that a record that is written often seldom needs a new expiry.
    std::chrono::milliseconds expiry_ahead{0};
    /// What is known of the records; may be null. Used by a batch's first round.
    KnownRecords* known = nullptr;
    /// Whether the connection is still that of the batch's last round.
    bool same_connection = false;
  };
  /// Starts a round: everything not done yet is submitted once. Completions may arrive before it
  /// returns; the listener is told at the end of the round, exactly once.
  void start_round(Store& store, const Round& round);
  /// After the first round: what was known of the records was wrong. Writes that relied on it
  /// become undone, and the next round sets their expiries.
  void distrust_known() noexcept;
  /// After a round: notes the lengths and expiries that its writes have left.
  void learn(KnownRecords& known, std::chrono::milliseconds expiry_ahead) const noexcept;
  /// After a round: forgets the records whose writes are undone.
  void forget_undone(KnownRecords& known) const noexcept;

  /// Between rounds: operations not done yet.
  [[nodiscard]] std::size_t undone() const noexcept { return undone_; }
  /// Whether some record was given bytes and not yet the expiry that belongs to them.
  [[nodiscard]] bool owes_expiry() const noexcept;
  /// After a round: counts the undone writes, by kind.
  void close_round() noexcept;
  [[nodiscard]] std::size_t failed_writes() const noexcept { return failed_writes_; }
  /// After a round: gives up the writes that the server refuses because of their keys.
  /// `one_key_only`: the server accepts other keys, so a refusal that could be due to the account
  /// is due to the key.
  void give_up_refused(bool one_key_only);
  /// After a round: gives up undone writes of users whose slot `is_away`; how many.
  template <typename Away>
  std::size_t give_up_away(Away&& is_away) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      WriteSlot& slot = slots_[i];
      if (slot.done || !is_away(writes.key(i))) continue;
      slot.done = true;
      slot.length_bytes = 0;
      slot.epoch = 0;
      ++count;
    }
    return count;
  }
  /// Whether write `i` was given up because the server will never accept it.
  [[nodiscard]] bool is_refused(std::size_t i) const noexcept { return slots_[i].refused; }
  /// StoreOutcome::connection_epoch of write `i`, once it is done; 0: it was given up.
  [[nodiscard]] std::uint64_t epoch_of(std::size_t i) const noexcept { return slots_[i].epoch; }
  /// Whether the last round had a refusal that may be due to a single key.
  [[nodiscard]] bool has_refusals() const noexcept {
    return !refusal_of_type_.empty() || !refusal_of_account_.empty();
  }
  /// Whether `is(write)` holds for every write that is not done.
  template <typename Is>
  [[nodiscard]] bool all_undone(Is&& is) const {
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (!slots_[i].done && !is(i)) return false;
    }
    return true;
  }
  /// The writes that were given up.
  [[nodiscard]] const std::vector<Refused>& refused() const noexcept { return refused_; }
  /// Whether writes of the last round were not answered in time.
  [[nodiscard]] bool timed_out() const noexcept {
    return failed_writes_ > 0 && slots_[failed_write_].code == StoreCode::kTimeout;
  }
  /// Why one of the last round's failed writes failed.
  [[nodiscard]] std::string sample_failure() const;

  /// The record's length after write `i`, once it is done.
  [[nodiscard]] std::size_t length_after(std::size_t i) const noexcept {
    return slots_[i].length_bytes;
  }
  /// Bytes counted against in_flight_bytes_max.
  [[nodiscard]] std::size_t weight_bytes() const noexcept;

  void clear() noexcept;

  // For the writer: when the next round is due, and how many rounds there were.
  std::uint32_t attempts = 0;
  std::chrono::steady_clock::time_point retry_at;
  std::chrono::steady_clock::time_point submitted_at;
  /// The connections' epoch when the last round began.
  std::uint64_t epoch = 0;

 private:
  /// What an error says about a key, rather than about the server or the account.
  enum class Refusal : std::uint8_t { kNone, kOfType, kOfAccount };
  static Refusal refusal_in(std::string_view text) noexcept;

  struct WriteSlot {
    std::size_t length_bytes = 0;
    std::size_t expected_bytes = 0;  // 0: nothing was known of the record
    std::uint64_t epoch = 0;         // StoreOutcome::connection_epoch
    StoreCode code = StoreCode::kUnavailable;
    bool appended = false;     // only the expiry is missing; the append has left length_bytes
    bool owes_expiry = false;  // appended in some round, and not done since then
    bool done = false;
    bool done_earlier = false;  // in a round before the last
    bool refused = false;
    Refusal refusal = Refusal::kNone;
    [[nodiscard]] bool as_expected() const noexcept {
      return expected_bytes != 0 && length_bytes == expected_bytes;
    }
  };
  void complete(std::size_t index, const StoreOutcome& outcome) noexcept override;
  void list_appends(const Round& round);
  void one_ended() noexcept;

  RoundListener* listener_;
  std::vector<WriteSlot> slots_;
  // The appends that the round has submitted, and which write each one is.
  std::vector<Store::Append> appends_;
  std::vector<std::uint32_t> appended_;
  std::vector<Refused> refused_;
  std::atomic<std::size_t> outstanding_{0};
  std::size_t undone_ = 0;
  std::size_t failed_writes_ = 0;

  std::mutex failure_mutex_;
  std::string failure_text_;        // guarded by failure_mutex_ during a round
  std::size_t failed_write_ = 0;    // guarded by failure_mutex_ during a round
  std::string refusal_of_type_;     // guarded by failure_mutex_ during a round
  std::string refusal_of_account_;  // guarded by failure_mutex_ during a round
};

}  // namespace fcap::updater
