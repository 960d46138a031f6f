#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/export.h>
#include <fcap/log.h>
#include <fcap/status.h>
#include <fcap/store.h>

namespace fcap {

/// Called on a thread that has just started, with the thread's name.
using ThreadCallback = std::function<void(std::string_view)>;

/// TLS 1.2 or later between fcap and Redis. Needs a libfcap that was built with it (CMake option
/// FCAP_TLS, which is on by default); otherwise `enabled` is refused with a clear status.
struct RedisTls {
  bool enabled = false;
  /// Whom to trust: a file of certificates in PEM, a directory of them as `openssl rehash` makes
  /// it, or both. Both empty: whom the system trusts.
  std::string ca_file = {};
  std::string ca_directory = {};
  /// The client's own certificate (with those between it and its authority) and its private key, in
  /// PEM, without a passphrase. No key file: the key is in the certificate's file.
  std::string certificate_file = {};
  std::string key_file = {};
  /// What the server's certificate must be for, a name or an IP address, and what is asked for by
  /// SNI. Empty: the host of the address.
  std::string server_name = {};
  /// False: the connection is encrypted, but to whom is anyone's guess. For tests.
  bool verify = true;
};

/// What the addresses in the options are.
enum class RedisTopology : std::uint8_t {
  kSingle,    ///< one address: the server itself
  kSentinel,  ///< the addresses of Sentinels, which know where the master is
  kCluster,   ///< nodes of a Redis Cluster, which tell where all others are
};

/// Whether a check may read from a replica, whose copy may lack the latest events. Verdicts given
/// by one say so (Verdict::stale). Nothing is ever written to a replica.
enum class RedisReplicaReads : std::uint8_t {
  kNever,            ///< from the master only
  kWhenMasterFails,  ///< for up to 60 s after the master was lost
  kNearest,          ///< from whichever of the two answers faster, and when the master fails
};

/// How to reach Redis. parse_redis_url() in <fcap/redis_url.h> fills it from a URL.
struct RedisOptions {
  // --- Address and account.

  /// What is found there is verified on every connection: a Sentinel's port or a node of a cluster
  /// where a single server is expected is refused, and so is a replica where Sentinels name it.
  RedisTopology topology = RedisTopology::kSingle;
  /// Each "host:port" or "[v6]:port"; of a single server also "/path/to/redis.sock".
  std::vector<std::string> addresses = {"127.0.0.1:6379"};
  /// kSentinel: the name by which the Sentinels know the master.
  std::string sentinel_master = {};
  /// ACL user and password on the Sentinels, which have their own; empty: no AUTH is sent to them.
  std::string sentinel_user = {};
  std::string sentinel_password = {};
  /// A file that holds it, instead of `sentinel_password`; may change as `password_file` may.
  std::string sentinel_password_file = {};
  /// Refuse a server that is a replica; a process that writes sets this. With kSentinel a replica
  /// is always refused.
  bool master_only = false;
  /// ACL user; empty for the default user.
  std::string user = {};
  /// Empty: no AUTH is sent.
  std::string password = {};
  /// A file that holds the password, instead of `password`; line ends at its end do not count.
  /// Looked at every 5 s and before a connection is made: when it or a file of `tls` has changed,
  /// connections are renewed with what it holds now, as they are after `connection_max_age`.
  std::string password_file = {};
  /// 0 to 15 on a usual server; only 0 on a cluster.
  int database = 0;
  RedisTls tls = {};

  // --- Behaviour.

  /// How long a connection attempt, with AUTH and SELECT, may take.
  std::chrono::milliseconds connect_timeout{1000};
  /// A connection on which a request is overdue and nothing at all has been answered for this long
  /// is closed and re-established. A slow server's connection stays.
  std::chrono::milliseconds stale_reset{1000};
  /// A connection that is older than this, give or take a quarter, is replaced after its name has
  /// been looked up again: nothing else shows that a name has moved while the former server still
  /// answers. It is used until the next one has been made and greeted; then requests wait for the
  /// answers to those that were sent, 50 ms at most. If the next one cannot be made, it stays in
  /// use, and that is tried again 10 s later. 0: never; else 1 s to 24 h.
  std::chrono::milliseconds connection_max_age{std::chrono::minutes{30}};
  /// Waits between connection attempts double from the first to the second value, with jitter.
  std::chrono::milliseconds reconnect_backoff_min{20};
  std::chrono::milliseconds reconnect_backoff_max{2000};
  /// This many failures in a row (timeouts, lost connections) open the node's breaker: operations
  /// then fail at once (kBreakerOpen) until a probe succeeds. 0: no breaker.
  std::size_t breaker_failures = 50;
  /// The same number of failures within one second also opens it when they are at least this share
  /// of that second's operations: a server that is mostly too slow. 0 to 1; 0: only failures in a
  /// row count.
  double breaker_failure_share = 0.4;
  /// How long an open breaker waits before its first probe; doubles, with jitter, to the second.
  std::chrono::milliseconds breaker_backoff_min{50};
  std::chrono::milliseconds breaker_backoff_max{2000};

  // --- Replicas.

  /// Not with kSingle, and not with `master_only`. One replica of each master, chosen at random, is
  /// connected to and asked about its state every second, as the master is, for which the account
  /// needs the command ROLE, that on the Sentinels `sentinel|replicas`, and in a cluster READONLY.
  RedisReplicaReads replica_reads = RedisReplicaReads::kNever;
  /// A replica is read only if its link to the master was up when it was last asked and it had then
  /// reached a position in the master's stream of writes that the master had at most this long ago
  /// (before the loss, once the master is lost). Positions are compared once per second, so a
  /// replica that keeps up appears to be about 1 s behind. 2 s to 60 s.
  std::chrono::milliseconds replica_lag_max{std::chrono::seconds{10}};

  // --- Performance.

  /// I/O threads, each with one connection per node. 1 serves several 100,000 requests/s.
  std::size_t io_threads = 1;
  /// Connections for blocking checks, besides those of the I/O threads: a check sends and waits on
  /// its caller's own thread, which saves two hand-overs between threads. It goes through an I/O
  /// thread, which serves many at once for less, if none of these is idle or if as many requests
  /// are under way there. They are made when the first blocking check asks for one. 0: none; up to
  /// 64.
  std::size_t direct_connections = 2;
  /// Operations waiting or in flight, over all threads; further ones fail at once (kOverloaded). In
  /// a cluster one node has a quarter of them at most (a third or half where there are only three
  /// or two), so that one which is frozen leaves the others their share.
  std::size_t queue_operations_max = 65'536;
  /// GETs that wait together go out as one MGET of up to this many keys; 1: never.
  std::size_t mget_keys_max = 16;
  /// A longer value is skipped as it arrives, and only the operation on its key fails (kTooLarge).
  /// The updater keeps records at 16 KB; a process that must repair longer ones, as the updater
  /// does, needs a large limit. 1 KB to 64 MB.
  std::size_t value_bytes_max = std::size_t{1} << 20U;

  /// Receives connects, disconnects, breaker changes, what is wrong with the server or with how it
  /// is used, and its errors (the first, second, fourth … of a kind); empty: nothing is logged.
  LogCallback log = {};
  /// Called first on each thread that is started, with its name ("fcap-redis-0", "fcap-resolve").
  /// A new thread inherits the affinity, scheduling class and nice value of whoever creates the
  /// store: a host that pins its threads sets here what fcap's should have. Must not throw.
  ThreadCallback thread_started = {};
};

/// Makes a store in Redis and starts its I/O threads. Does not wait for a connection: operations
/// fail (kUnavailable) until there is one. Fails on an address that cannot be parsed or a value out
/// of its range. The destructor completes everything pending with kUnavailable and joins the
/// threads.
///
/// It is a good guest in the host's process: sockets never raise SIGPIPE, the threads block all
/// signals but those of their own faults and of profilers (so that the host's crash handler is
/// called), and host names are resolved off the I/O threads.
[[nodiscard]] FCAP_EXPORT Result<std::unique_ptr<Store>> make_redis_store(RedisOptions options);

}  // namespace fcap
