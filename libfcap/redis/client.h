#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/redis_options.h>
#include <fcap/status.h>

#include "redis/cluster_shape.h"
#include "redis/reply.h"

namespace fcap::redis {

/// How a request ended. Not StoreCode, which also says what the server replied: the transport does
/// not look into replies.
enum class TransportCode : std::uint8_t {
  kOk,           ///< every reply has arrived
  kTimeout,      ///< not by the deadline; it may or may not have been executed
  kUnavailable,  ///< not connected, or the connection was lost on the way; may have been executed
  kBreakerOpen,  ///< refused at once; not sent
  kOverloaded,   ///< a queue is full; not sent
};

/// The hash slot of a key, 0 to 16383: CRC16 (XMODEM) of the part in the first non-empty {…}, or of
/// the whole key, modulo 16384. [Redis Cluster specification, "Hash tags"]
[[nodiscard]] std::uint16_t slot_of(std::string_view key) noexcept;

/// Appends one command in RESP to `wire`.
void append_command(std::string& wire, std::initializer_list<std::string_view> words);

/// One or more commands that go out together, in order, to the node of one slot. Owned by its
/// maker, who keeps it alive and unchanged from Client::submit() until on_done() has been called.
class Request {
 public:
  /// What `wire` holds.
  enum class WireForm : std::uint8_t {
    kCommands,  ///< commands in RESP
    kGetKey,    ///< a key to GET; keys that wait together may go out as one MGET
  };

  std::string wire;
  WireForm form = WireForm::kCommands;
  std::uint32_t command_count = 1;  ///< how many commands `wire` holds, at least 1
  std::uint16_t slot = 0;           ///< the slot of their key, below 16384
  std::chrono::steady_clock::time_point deadline;
  /// Whether the deadline means "no progress": while the server answers others on the connection,
  /// the request waits on (Pipeline::kPatience).
  bool patient = false;
  /// Whether it may go to a replica: for reads whose callers are told that.
  bool may_be_stale = false;
  /// Whether a kGetKey may take the answer to the read of the same key that waits before it.
  bool may_join = false;
  bool by_replica = false;  ///< the client's own: it went to one
  /// If set, the request is sent only while connection_epoch(slot) is this, and otherwise refused
  /// with kUnavailable; a redirect to another node is such a refusal.
  std::optional<std::uint64_t> epoch;

  /// If set, in a cluster, it goes to the node with this number (Client::node_at()), whatever its
  /// slot. A redirect of its only command is a refusal.
  std::optional<std::uint16_t> only_node;

  // The client's own, of a cluster: to which node it goes, whether after ASKING, and how often it
  // was redirected.
  std::uint16_t node = 0;
  bool asking = false;
  std::uint8_t hops = 0;
  /// In a cluster, during on_reply(): connection_epoch() of the node that has answered.
  std::uint64_t answered_epoch = 0;

  /// Set by on_reply() where the reply is of a kind that its command never gets: requests and
  /// answers may have parted, so the connection is given up, and this request ends with
  /// kUnavailable.
  bool misanswered = false;

  /// One call per command, in order; error replies included.
  virtual void on_reply(std::uint32_t index, const Reply& reply) noexcept = 0;
  /// Called exactly once, last; after it the client does not touch the request again. With a code
  /// other than kOk some or all on_reply() calls may be missing.
  virtual void on_done(TransportCode code) noexcept = 0;

  Request* next_submitted = nullptr;  ///< the client's own

 protected:
  ~Request() = default;
};

/// A shard of a cluster, for those who keep something per shard.
struct ClusterShard {
  std::string id;       ///< its master's
  std::string address;  ///< its master's
  std::vector<SlotRange> slots;
  /// As Client::connection_epoch() of its slots; 0: never connected.
  std::uint64_t connection_epoch = 0;
};

/// Shared, pipelined connections to Redis. Replies are matched to requests by order; a request past
/// its deadline is finished with kTimeout and leaves a tombstone that swallows its late replies.
///
/// Thread safety: submit() from any thread, including from on_reply() and on_done(), which are
/// called on an I/O thread (or, where a request is refused at once, within submit()). Requests of
/// one slot submitted by one thread are executed in that order, except in a cluster that moves the
/// slot meanwhile: a request that is redirected may come after a later one that was not. Must not
/// be destroyed by a callback.
///
/// In a cluster a request of one command goes wherever redirects lead it, within its deadline. Of
/// one with several commands each may be answered with an error that is a redirect (is_redirect());
/// the slot map is right by then, and the command can be submitted again, on its own.
///
/// After fork() a child must not submit; it may destroy the client, which closes the child's copies
/// of the descriptors and does not affect the parent.
class Client {
 public:
  static Result<std::unique_ptr<Client>> create(RedisOptions options);
  /// Finishes everything pending with kUnavailable and joins the I/O threads.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void submit(Request& request) noexcept;

  /// As DirectReads, on a direct connection (RedisOptions::direct_connections).
  [[nodiscard]] bool read(std::string_view key, std::chrono::steady_clock::time_point deadline,
                          StoreCompletion& done) noexcept;
  void stop_reads() noexcept;

  /// How many connections there are to each node. A request goes to one of them by the slot of its
  /// key; keys whose slots are equal modulo this number may share a request, in a cluster only if
  /// they are also of one node.
  [[nodiscard]] std::size_t connections_per_node() const noexcept;
  [[nodiscard]] bool is_cluster() const noexcept;
  /// Whether it matters what the slot of a request is.
  [[nodiscard]] bool goes_by_slot() const noexcept {
    return is_cluster() || connections_per_node() > 1;
  }
  /// In a cluster: keys whose slots give the same number may share a request.
  [[nodiscard]] std::size_t route_of(std::uint16_t slot) const noexcept;

  /// Whether the option replica_reads allows Request::may_be_stale.
  [[nodiscard]] bool may_read_replicas() const noexcept;

  /// The option queue_operations_max.
  [[nodiscard]] std::size_t operations_max() const noexcept;

  /// Grows by one with each connection made and each one lost: a writer that sees the same value
  /// before and after knows that nothing was reconnected in between.
  [[nodiscard]] std::uint64_t connection_epoch() const noexcept;
  /// The same of the connections to the node that serves a slot: a value that no other node ever
  /// has, so that it also shows whether another node serves the slot now. Topologies other than a
  /// cluster: connection_epoch().
  [[nodiscard]] std::uint64_t connection_epoch(std::uint16_t slot) const noexcept;
  /// The shards of a cluster as the latest slot map has them; none with other topologies, and
  /// before the first map.
  [[nodiscard]] std::vector<ClusterShard> shards() const;
  /// The number of the node at this address, "host:port", whether it has slots or not; nullopt:
  /// this is no cluster, or no such address.
  [[nodiscard]] std::optional<std::uint16_t> node_at(std::string_view address) const;
  /// connection_epoch() of the connections to a node; 0: never connected.
  [[nodiscard]] std::uint64_t node_epoch(std::uint16_t node) const noexcept;
  /// Whether every I/O thread has a ready connection to each node.
  [[nodiscard]] bool connected() const noexcept;
  /// Why the latest connection or attempt failed, for people; empty while that is connected().
  [[nodiscard]] std::string last_error() const;
  /// Counters, states and the latest error.
  [[nodiscard]] StoreHealth health() const;

  /// Events before it may be missing for some user, as the writer has recorded it; nullopt: no
  /// event is known to be missing.
  [[nodiscard]] std::optional<Instant> missing_before() const noexcept;
  /// Does the same for the users of one slot.
  [[nodiscard]] std::optional<Instant> missing_before(std::uint16_t slot) const noexcept;

  /// What the writer's configuration lets this process write, and the server's clock.
  [[nodiscard]] WriteTerms write_terms() const noexcept;

  /// Compares the writer's recorded configuration with this from now on; health() shows it.
  void expect_config(const ExpectedConfig& expected);

  /// Keeps something alive for as long as requests may be pending, such as where they live.
  void keep(std::shared_ptr<void> kept);

  class ClientThreads;

 private:
  explicit Client(std::unique_ptr<ClientThreads> impl);
  std::unique_ptr<ClientThreads> impl_;
};

}  // namespace fcap::redis
