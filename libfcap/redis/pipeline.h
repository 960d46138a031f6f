#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "redis/client.h"
#include "redis/redirects.h"
#include "redis/ring_queue.h"

namespace fcap::redis {

/// Whether it is an error that says that the server cannot serve now; any other is an answer to
/// this request.
[[nodiscard]] bool is_refusal(const Reply& reply) noexcept;

/// The order of one connection: which request is waiting, which has been written, and whose the
/// next reply is. Free of I/O and of clocks. A request that is finished before its replies have
/// come leaves its place (a tombstone) behind, which swallows them: no reply can reach another
/// request.
///
/// Thread safety: none; belongs to one I/O thread.
class Pipeline {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Options {
    std::size_t mget_keys_max = 1;
    /// write() stops above this, so that a peer that does not read leaves requests waiting, where
    /// they can expire without having been sent.
    std::size_t wire_bytes_max = std::size_t{256} << 10U;
    /// Minimum interval between scans for expired requests.
    std::chrono::microseconds expire_pause{250};
  };

  /// What a pipeline to a node of a cluster has in addition.
  struct Cluster {
    std::atomic<std::size_t>* node_operations = nullptr;  ///< counted down as `operations` is
    const std::atomic<std::uint64_t>* epoch = nullptr;    ///< for Request::answered_epoch
    Redirects* redirects = nullptr;
  };

  /// `operations` is counted down when a request leaves: with its last reply, or when it is
  /// finished without having been sent.
  Pipeline(const Options& options, std::atomic<std::size_t>& operations);
  Pipeline(const Options& options, std::atomic<std::size_t>& operations, Cluster cluster);

  /// Adds a request at the end of the queue. If it gives the server less than kFairTime, it does
  /// not count as a failure of the server when it expires.
  void add(Request& request, TimePoint now);

  /// Writes a request of the connection itself (a handshake, a probe) at once, before those that
  /// wait. It does not count as an operation.
  void write_own(Request& request, std::string& wire);

  /// Writes waiting requests.
  void write(std::string& wire);

  /// Hands the next reply to its request; false if no request can have caused it
  /// (Request::misanswered included).
  [[nodiscard]] bool on_reply(const Reply& reply);

  static constexpr std::chrono::milliseconds kFairTime{1};

  /// The server has answered something at `now`.
  void note_progress(TimePoint now) noexcept { progress_at_ = now; }
  [[nodiscard]] TimePoint progress_at() const noexcept { return progress_at_; }
  /// A patient request whose deadline has passed expires when nothing has been answered for
  /// kPatience, and in any case kPatienceMax after its deadline.
  static constexpr std::chrono::milliseconds kPatience{1'000};
  static constexpr std::chrono::milliseconds kPatienceMax{30'000};

  struct Expired {
    std::size_t count = 0;     ///< operations that were finished
    std::size_t failures = 0;  ///< of these, those that count as failures of the server
  };
  /// Finishes overdue requests with kTimeout.
  Expired expire(TimePoint now);
  /// Requests that are unfinished now do not count as failures of the server when they expire: this
  /// process used up their time.
  void excuse() noexcept;

  /// Finishes requests that were written with `code` and forgets all tombstones. Returns how many
  /// operations that were.
  std::size_t abandon_sent(TransportCode code);
  /// Finishes waiting requests.
  void abandon_waiting(TransportCode code);
  /// Finishes waiting requests that may be sent on this connection only (Request::epoch).
  void abandon_bound(TransportCode code);

  /// The earliest time at which expire() may have something to do.
  [[nodiscard]] TimePoint next_deadline() const noexcept { return next_deadline_; }
  /// The deadline of the longest overdue tombstone, or something earlier; the end of time without
  /// one.
  [[nodiscard]] TimePoint oldest_tombstone() const noexcept { return oldest_tombstone_; }
  /// Makes oldest_tombstone() exact.
  void find_oldest_tombstone() noexcept;

  /// How many operations were answered in time since the last call.
  [[nodiscard]] std::size_t take_successes() noexcept { return std::exchange(successes_, 0); }
  /// How many were answered with an error that says the server cannot serve (LOADING, MASTERDOWN,
  /// CLUSTERDOWN, TRYAGAIN) since the last call.
  [[nodiscard]] std::size_t take_refusals() noexcept { return std::exchange(refusals_, 0); }
  /// How many error replies there were since the last call; last_error() is the latest of them.
  [[nodiscard]] std::size_t take_errors() noexcept { return std::exchange(errors_, 0); }
  [[nodiscard]] const std::string& last_error() const noexcept { return last_error_; }
  /// Whether a reply said that this server is a replica, since the last call.
  [[nodiscard]] bool take_readonly() noexcept { return std::exchange(readonly_, false); }
  /// Requests whose last reply came in, and tombstones, since the beginning.
  [[nodiscard]] std::size_t answered() const noexcept { return answered_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return sent_.size(); }
  /// Requests that write() has not written; some may have expired.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
  [[nodiscard]] bool idle() const noexcept { return sent_.empty() && waiting_.empty(); }

 private:
  struct QueueEntry {
    Request* request = nullptr;  // null: a tombstone, or finished while it waited
    TimePoint deadline;
    std::uint32_t commands = 0;
    std::uint32_t commands_left = 0;
    std::uint32_t mget_keys = 1;  // of a group's first entry: how many keys the command has
    bool joins = false;           // it takes the answer to the read of the entry before it
    bool asks = false;            // the next reply is that to ASKING
    bool is_own = false;
    bool is_patient = false;
    bool is_fair = true;  // whether the server is to blame when it expires
  };

  void write_gets(std::string& wire);
  void write_asking(std::string& wire, QueueEntry entry);
  bool on_mget_reply(const Reply& reply);
  [[nodiscard]] bool on_get_reply(const Reply& reply);
  [[nodiscard]] bool on_entry_reply(const Reply& reply);
  [[nodiscard]] bool take_redirect(const QueueEntry& entry, const Reply& reply);
  void leave() noexcept;
  void note_error(const Reply& reply);
  void finish(const QueueEntry& entry, TransportCode code);
  [[nodiscard]] TimePoint due_at(const QueueEntry& entry) const noexcept;
  void expire_in(RingQueue<QueueEntry>& entries, TimePoint now, Expired& expired);

  Options options_;
  std::atomic<std::size_t>& operations_;
  const Cluster cluster_;
  RingQueue<QueueEntry> waiting_;
  RingQueue<QueueEntry> sent_;
  TimePoint next_deadline_ = TimePoint::max();
  TimePoint oldest_tombstone_ = TimePoint::max();
  TimePoint progress_at_{};
  std::size_t answered_ = 0;
  std::size_t successes_ = 0;
  std::size_t refusals_ = 0;
  std::size_t errors_ = 0;
  std::string last_error_;
  bool readonly_ = false;
};

}  // namespace fcap::redis
