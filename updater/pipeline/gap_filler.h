#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fcap/log.h>
#include <fcap/store.h>
#include <fcap/time.h>

#include "redis/log_thinner.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/batch_writer.h"
#include "updater/pipeline/coalescer.h"
#include "updater/pipeline/gap_log.h"
#include "updater/pipeline/intake.h"
#include "updater/pipeline/partition_set.h"

namespace fcap::updater {

struct GapFillerOptions {
  Coalescer::Options records;
  std::string topic = {};  ///< needed where messages are Kafka's
  /// How many partitions are filled at a time.
  std::size_t partitions_max = 4;
  std::chrono::milliseconds read_deadline{2000};  ///< of records
  /// The wait before a stretch that could not be read is requested again.
  std::chrono::milliseconds again_after{1000};
};

/// What the filler works with; everything must outlive it.
struct GapFillerParts {
  PartitionSet* partitions = nullptr;
  BatchWriter* writer = nullptr;
  Store* store = nullptr;
  GapLog* log = nullptr;
  Intake* intake = nullptr;
  std::function<IntakeClocks()> clocks;
  /// Sends a message that is not an event to the dead-letter topic; it counts as done when
  /// letter_arrived() was called.
  std::function<void(std::int32_t partition, const GapLog::GapMessage&, const events::Rejected&)>
      reject;
  LogCallback report = {};
  /// A piece was filled. Neither its events nor the broker's timestamps of its messages are later
  /// than `newest`; nullopt: it had neither. May be empty.
  std::function<void(const GapPiece&, std::optional<Instant> newest)> filled = {};
};

/// Fills the gaps of partitions while live messages are read and written: reads a piece of a gap
/// from the log, reads each user's record, and appends what it lacks, with a few writes at a time.
/// A piece counts as filled when all of it was acknowledged on connections that have not changed
/// since. Reading the records only keeps them short: appending an entry again would change no
/// answer.
///
/// Thread safety: one thread (the main loop's) calls it; completions arrive from anywhere.
class GapFiller {
 public:
  using Clock = std::chrono::steady_clock;

  GapFiller(GapFillerOptions options, GapFillerParts parts, Metrics& metrics);
  /// Waits for records that are being read (at most their deadline).
  ~GapFiller();
  GapFiller(const GapFiller&) = delete;
  GapFiller& operator=(const GapFiller&) = delete;

  /// Does what is due. `read`: more may be read and written now.
  void tick(Clock::time_point now, bool read);
  /// Whether there is something to fill.
  [[nodiscard]] bool busy() const noexcept { return !pieces_.empty(); }
  /// Whether it waits for records of users.
  [[nodiscard]] bool looking() const noexcept { return !lookups_.empty(); }

  /// Whether a batch that the filler has submitted is still worth writing.
  [[nodiscard]] bool current(const Batch& batch) const;
  /// Such a batch has been written. To be called before it is released.
  void written(const Batch& batch);
  /// A write that Redis refuses because of its key has become a dead letter, and its piece waits
  /// for it.
  void await_letter(const Batch& batch, std::int64_t offset);
  void letter_arrived(std::int32_t partition, std::int64_t offset);

 private:
  struct OpenPiece {
    GapPiece what;
    std::size_t chunks = 0;  // being looked up or written
    bool begun = false;      // some of it was read
    bool read_to_end = false;
    std::optional<std::int64_t> log_start = {};  // where the log was found to begin; not told yet
    std::multiset<std::int64_t> letters = {};    // that have not arrived
    std::optional<Instant> newest = {};          // of its events and of its broker's timestamps
  };
  class ChunkLookup;
  using Pieces = std::map<std::uint64_t, OpenPiece>;

  void drop_passed();
  void begin_pieces(Clock::time_point now);
  /// False when no chunk has arrived, or when there is no room for one.
  bool take_chunk(Clock::time_point now);
  /// How many more messages may be looked up.
  [[nodiscard]] std::size_t room() const noexcept;
  /// Tells the partitions that messages of the piece have expired. To be called once the first
  /// later message is known, whose time is `newest`, or once the piece was read to its end
  /// without one (nullopt).
  void tell_expired(OpenPiece& piece, std::optional<Instant> newest);
  /// Its piece is read again from its beginning, in a while.
  void give_up(Pieces::iterator piece, Clock::time_point now);
  /// False: some message cannot be decoded yet.
  bool take_messages(OpenPiece& piece, const GapLog::Chunk& chunk, ChunkLookup& lookup);
  bool take_message(OpenPiece& piece, const GapLog::GapMessage& message, const IntakeClocks& clocks,
                    ChunkLookup& lookup, LeftOut& left_out);
  [[nodiscard]] bool is_in(const OpenPiece& piece, const events::Event& event,
                           ChunkLookup& lookup) const;
  static void note_newest(OpenPiece& piece, Instant at);
  void submit(ChunkLookup& lookup);
  void settle_lookups();
  void finish_pieces();
  [[nodiscard]] bool being_filled(std::int32_t partition) const;

  GapFillerOptions options_;
  GapFillerParts parts_;
  Metrics* metrics_;
  Pieces pieces_;  // by ticket
  std::uint64_t tickets_ = 0;
  std::map<std::int32_t, Clock::time_point> not_before_;
  redis::LogThinner unreadable_;
  std::vector<std::unique_ptr<ChunkLookup>> lookups_;  // under way
  std::vector<std::unique_ptr<ChunkLookup>> idle_;
  std::vector<GapPiece> listed_;  // scratch
  ledger::Ledger ledger_;         // scratch
};

/// Shows what is missing, or that it is not known.
void show_gaps(const PartitionSet& partitions, Metrics& metrics);

}  // namespace fcap::updater
