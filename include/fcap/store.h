#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <fcap/defaults.h>
#include <fcap/export.h>
#include <fcap/health.h>
#include <fcap/time.h>

namespace fcap {

namespace redis {
class DirectReads;
}  // namespace redis

/// How a store operation ended.
enum class StoreCode : std::uint8_t {
  kOk,           ///< done; for a read, the record was found
  kNotFound,     ///< a read: there is no record (an empty history, not a failure)
  kConflict,     ///< a compare-and-set: the record is not what was expected; nothing was written
  kTimeout,      ///< no answer before the deadline; a write may or may not have happened
  kUnavailable,  ///< not connected, the connection was lost, or the answer is of a kind that Redis
                 ///< never gives; a write may or may not have happened
  kBreakerOpen,  ///< refused at once after repeated failures; nothing was written
  kOverloaded,   ///< a bounded queue is full; nothing was written
  kServerError,  ///< the server answered with an error (`text`), such as OOM; nothing was written,
                 ///< unless an append's length_bytes is above 0
  kTooLarge,     ///< a read: the value is longer than a record may be, and was passed over (`text`)
};

/// What an operation gave. The views are valid only during the call that hands them over.
struct StoreOutcome {
  StoreCode code = StoreCode::kOk;
  /// A read: the record's bytes.
  std::string_view record = {};
  /// After an append, the record's length in bytes. After one that failed it is above 0 if the
  /// record has the bytes, and only its expiry may be missing.
  std::size_t length_bytes = 0;
  /// kServerError: the server's text. kTooLarge: which bound. Otherwise empty: why a store is not
  /// available is in Store::health(), and not copied for each operation that fails.
  std::string_view text = {};
  /// A read that a replica has answered: the latest writes may be missing.
  bool stale = false;
  /// An append in a cluster: over which connection the node that executed it has said so, as
  /// CompareAndSet::connection_epoch names it; 0 elsewhere.
  std::uint64_t connection_epoch = 0;
};

/// What those who write reservations must know: what the fleet's writer has recorded, and how the
/// store's clock compares with this machine's.
struct WriteTerms {
  /// Whether what the writer has recorded has been read, or that it has recorded nothing. If not,
  /// the store has not been reached yet, or has been lost, and hard calls answer that it is
  /// unavailable.
  bool are_known = true;
  /// The longest life of a reservation; 0: the writer has recorded nothing, or in a format that
  /// this release does not know, and nothing may be reserved.
  std::chrono::milliseconds reservation_life_max{0};
  /// What the writer trims a record to.
  std::size_t record_bytes_max = kDefaultRecordBytesMax;
  /// Whether the store keeps time on another machine.
  bool has_clock = false;
  /// If so, its clock minus this machine's; none: not known (yet).
  std::optional<std::chrono::milliseconds> clock_difference = {};
};

/// Receives one outcome. The caller owns it and keeps it alive until complete() has been called.
class StoreCompletion {
 public:
  /// Called exactly once per operation, from any thread, possibly before the operation's call has
  /// returned. Must not block and must not start a blocking check.
  virtual void complete(const StoreOutcome& outcome) noexcept = 0;

 protected:
  ~StoreCompletion() = default;
};

/// Receives the outcomes of several operations that were started together. The caller owns it and
/// keeps it alive until complete() has been called for each.
class StoreListCompletion {
 public:
  /// Called exactly once per operation, `index` being its place in the list; otherwise as
  /// StoreCompletion::complete().
  virtual void complete(std::size_t index, const StoreOutcome& outcome) noexcept = 0;

 protected:
  ~StoreListCompletion() = default;
};

/// Where ledgers live: the seam between fcap and Redis, and the place for another store.
///
/// Thread safety: all operations may be called from any thread at once. They never block: they
/// start, and complete later. An operation completes by its deadline (kTimeout) at the latest, give
/// or take a millisecond; its late answer, if any, reaches nobody. The views in the arguments need
/// to live only until the call returns.
class FCAP_EXPORT Store {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// A write that happens only if the record is still what it was.
  struct CompareAndSet {
    std::string_view key = {};
    /// The whole record as read; absent: there must be none.
    std::optional<std::string_view> expected = {};
    std::string_view desired = {};
    /// The record's expiry afterwards. Never shortens the one it has.
    Instant expire_at = {};
    /// What was appended behind `expected` since it was read is no conflict: it stays, behind
    /// `desired`. For changes that leave a record's meaning as it is.
    bool keep_appended = false;
    /// Written only while the Redis connections are those of this epoch: once one has been lost or
    /// made since, nothing is written (kUnavailable). Stores without connections ignore it.
    std::optional<std::uint64_t> connection_epoch = {};
  };

  /// One of several appends.
  struct Append {
    std::string_view key = {};
    std::string_view bytes = {};
    /// What the record's expiry is at least, afterwards.
    Instant expire_at = {};
    /// What the caller knows, if anything: while the record had this many bytes, its expiry was at
    /// or after `expire_at`. A store may leave the expiry alone where the record has grown from
    /// that length by nothing but `bytes`.
    std::optional<std::size_t> known_bytes = {};
  };

  virtual ~Store();

  /// Reads a record.
  virtual void get(std::string_view key, Deadline deadline, StoreCompletion& done) noexcept = 0;

  /// get() for checks, to whom an older copy of the record is better than none or than waiting: a
  /// store may answer from a replica, and then says so (StoreOutcome::stale).
  virtual void get_maybe_stale(std::string_view key, Deadline deadline,
                               StoreCompletion& done) noexcept;

  /// Adds bytes to the end of a record, making it if there is none, and extends its expiry to
  /// `expire_at` if that is later. kOk means that both have happened.
  virtual void append(std::string_view key, std::string_view bytes, Instant expire_at,
                      Deadline deadline, StoreCompletion& done) noexcept = 0;

  /// append() for bytes that soon mean nothing any more, in one exchange: the record gets the
  /// expiry only if it has none yet.
  virtual void append_note(std::string_view key, std::string_view bytes, Instant expire_at,
                           Deadline deadline, StoreCompletion& done) noexcept;

  /// Starts several appends, as if by append() in this order; cheaper than that where a store knows
  /// how. The list's views need to live only until the call returns. A store may keep the appends
  /// up to 30 s beyond the deadline for as long as its server goes on answering: to repeat what a
  /// slow server is about to do would make it slower.
  virtual void append_all(std::span<const Append> appends, Deadline deadline,
                          StoreListCompletion& done) noexcept;

  /// Replaces a record if it is still what was read.
  virtual void compare_and_set(const CompareAndSet& change, Deadline deadline,
                               StoreCompletion& done) noexcept = 0;

  /// How the store is doing. Never blocks on a server. A store that does not override this counts
  /// as connected and healthy.
  [[nodiscard]] virtual StoreHealth health() const;

  /// Says what this process expects of the writer's configuration. A store that knows how compares
  /// it from then on with what the writer has recorded, and shows the outcome in health(); others
  /// do nothing. The latest call counts.
  virtual void expect_config(const ExpectedConfig& expected);

  /// Events before this instant may be missing from some record, because the writer is still
  /// reading them again after a loss, or because its configuration, which would say so, is not
  /// there (Instant::max()). None: no such events are known of. Asked at every check; never
  /// blocks, and takes no lock.
  [[nodiscard]] virtual std::optional<Instant> missing_before() const noexcept;

  /// The same of the record with this key: counts that reach further back say that they are not
  /// complete. Asked while missing_before() gives an instant; never blocks, and takes no lock. A
  /// store that does not override this says of each record what missing_before() says.
  [[nodiscard]] virtual std::optional<Instant> record_missing_before(
      std::string_view key) const noexcept;

  /// What this process may write beside the writer. A store that does not override this does not
  /// know, and then nothing is reserved. Never blocks, and takes no lock.
  [[nodiscard]] virtual WriteTerms write_terms() const noexcept;

  /// fcap's own: how a blocking check reads on its caller's thread. Null for all other stores.
  [[nodiscard]] virtual redis::DirectReads* direct_reads() noexcept;
};

/// A store in this process's memory: for tests, simulations and small single-process uses. It
/// completes every operation before the call returns. Expiry is judged by the system clock. There
/// is no other writer in it, so reservations of up to 15 minutes may be made.
[[nodiscard]] FCAP_EXPORT std::unique_ptr<Store> make_memory_store();

}  // namespace fcap
