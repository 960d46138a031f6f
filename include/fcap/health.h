#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcap/time.h>

namespace fcap {

/// What a server says it is.
enum class ServerRole : std::uint8_t {
  kUnknown,   ///< not asked yet, or the server does not tell (an ACL without ROLE)
  kMaster,    ///< takes writes
  kReplica,   ///< a copy; what it has may be old
  kSentinel,  ///< holds no data at all: the address is the wrong one
};

/// How this process' configuration compares with the one that the writer has recorded in the store.
enum class ConfigState : std::uint8_t {
  kUnknown,  ///< nothing is expected, or the record cannot be read; `config_text` says why
  kMissing,  ///< no writer has ever recorded one: probably the wrong prefix, database or server
  kAgrees,
  kDiffers,  ///< `config_text` names each difference
};

/// What a reader expects of the one who writes the records. Store::expect_config() takes it.
struct ExpectedConfig {
  std::string key_prefix;
  std::chrono::milliseconds retention{0};
  std::vector<std::string> null_user_ids;
};

/// The state of a store, for health reports and statistics. Counters grow for as long as the store
/// lives.
struct StoreHealth {
  // --- The connection.

  /// Whether every connection that the store keeps stands and has been greeted.
  bool connected = true;
  /// Whether a breaker is open: operations fail at once.
  bool breaker_open = false;
  std::uint64_t connections = 0;       ///< made, the first ones included
  std::uint64_t reconnects = 0;        ///< connections that were lost after they had been ready
  std::uint64_t breaker_openings = 0;  ///< times that a breaker opened

  /// Whether checks are read from a replica now (RedisOptions::replica_reads).
  bool reads_replica = false;

  // --- Failed operations. A read that finds no record is not one of them.

  std::uint64_t server_errors = 0;  ///< replies in which the server answered with an error
  std::uint64_t timeouts = 0;       ///< operations without an answer by their deadline
  std::uint64_t failures = 0;       ///< operations that were under way on a lost connection

  // --- The latest error, in the server's own words if it gave any. It is kept after a recovery.
  // Like all texts of the Redis store it is one line, without control characters.

  std::string last_error = {};
  std::optional<Instant> last_error_at = {};

  // --- The server.

  ServerRole role = ServerRole::kUnknown;
  /// Whether a replica's link to its master is up. If it is not, its data become stale.
  bool replica_link_up = true;
  /// For people: "master", "replica of 10.0.0.5:6379, whose link is down"; empty while unknown.
  std::string role_text = {};
  /// The server's clock minus this machine's now, give or take the round trip: what hard calls are
  /// judged by. None: not known.
  std::optional<std::chrono::milliseconds> clock_difference = {};
  /// For people: why that is not known although the server was asked, such as an account without
  /// TIME; empty otherwise.
  std::string clock_text = {};

  // --- The configuration (Store::expect_config()).

  ConfigState config_state = ConfigState::kUnknown;
  /// For people: what differs, or why that is not known; empty while it agrees.
  std::string config_text = {};
  /// Events of some users before it may be missing: the writer is reading them again after a loss.
  /// Where any may be, because the configuration is missing or cannot be read, this is empty.
  /// Where only some slots of a cluster are concerned, `more` has their number, "missing_slots".
  std::optional<Instant> missing_before = {};

  // --- Further values by name, such as those of single nodes. New ones appear here first.

  std::vector<std::pair<std::string, std::string>> more = {};
};

}  // namespace fcap
