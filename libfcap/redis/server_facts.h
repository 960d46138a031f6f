#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <fcap/health.h>
#include <fcap/time.h>

#include "redis/reply.h"

namespace fcap::redis {

/// What a server has reported about itself. Free of I/O; if the server refuses a query, the answer
/// stays unknown.
struct ServerFacts {
  ServerRole role = ServerRole::kUnknown;
  bool replica_link_up = true;
  std::string role_text;
  /// Whether it is a node of a cluster, and what is known of its slots and masters.
  bool in_cluster = false;
  bool cluster_is_off = false;
  std::int64_t cluster_slots = 0;
  std::int64_t cluster_masters = 0;
  /// The server's clock minus this machine's.
  std::optional<std::chrono::milliseconds> clock_difference;
  /// Why that is not known, after the server was asked; empty otherwise.
  std::string clock_text;
  /// Such as "6.2.14", if it is below what fcap needs; empty: it is not, or the server does not
  /// tell.
  std::string old_version;

  /// The reply to ROLE.
  void take_role(const Reply& reply);
  /// The reply to HELLO, which no rights of an account are needed for since Redis 7.
  void take_hello(const Reply& reply);
  /// The reply to CLUSTER INFO, which a server without cluster mode answers with an error.
  void take_cluster(const Reply& reply);
  /// The reply to TIME, which came at `now`.
  void take_time(const Reply& reply, Instant now);

  /// Why records cannot be read from this server, naming what to change; empty if they can.
  [[nodiscard]] std::string unfit() const;
  /// Why it cannot be a node of a cluster.
  [[nodiscard]] std::string unfit_for_cluster() const;
};

}  // namespace fcap::redis
