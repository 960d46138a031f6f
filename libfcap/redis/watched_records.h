#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <fcap/status.h>
#include <fcap/store.h>
#include <fcap/time.h>

namespace fcap::redis {

class Client;

/// Rewrites many records at a time, if nobody changes one of them meanwhile: reads them under
/// WATCH, and replaces them in one transaction, which Redis refuses as a whole if one of them has
/// changed or expired since. [Redis documentation, "Transactions", optimistic locking] Plain
/// commands cost Redis about half of what a script costs that compares and stores each record.
///
/// WATCH belongs to a connection, and every EXEC ends it. So nothing else on the client's
/// connection may use either, and there is one group at a time: read(), then replace() or the next
/// read(). Not for a Cluster, whose transactions take keys of one slot.
///
/// Thread safety: one thread calls; completions arrive from anywhere. It must outlive its
/// operations.
class WatchedRecords {
 public:
  using Deadline = Store::Deadline;

  /// Receives what read() finds, and how an operation has ended.
  class Completion {
   public:
    /// One of the records, by its place among the keys, and its expiry if it has one: kOk,
    /// kNotFound, kTooLarge, or kServerError for what is not a string. Views are valid during the
    /// call.
    virtual void on_record(std::size_t index, const StoreOutcome& outcome,
                           std::optional<Instant> expire_at) noexcept = 0;
    /// The operation's last call. After replace(): kOk, all are replaced; kConflict, one has
    /// changed and none is replaced; others: unknown. (kServerError: Redis has refused, usually
    /// all.)
    virtual void on_done(StoreCode code) noexcept = 0;

   protected:
    ~Completion() = default;
  };

  /// What is put in a record's place; an empty one is deleted.
  struct Change {
    std::string_view key;
    std::string_view desired;
    Instant expire_at;
  };

  virtual ~WatchedRecords() = default;

  /// kServerError: the server, or the rights of the account, do not allow this.
  virtual void read(std::span<const std::string_view> keys, Deadline deadline,
                    Completion& done) noexcept = 0;
  /// Replaces some of the records that were read last.
  virtual void replace(std::span<const Change> changes, Deadline deadline,
                       Completion& done) noexcept = 0;
};

/// `client` must outlive it. Null if it is for a Cluster.
[[nodiscard]] std::unique_ptr<WatchedRecords> make_watched_records(Client& client);

}  // namespace fcap::redis
