#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/status.h>

#include "redis/address.h"
#include "redis/reply.h"

namespace fcap::redis {

/// How many slots a cluster divides its keys into; slot_of() says which one a key is in.
inline constexpr std::size_t kSlotCount = 16'384;
/// How many nodes a cluster may have here: about what Redis Cluster itself is made for.
inline constexpr std::size_t kClusterNodesMax = 1'024;

/// The slots from `first` to `last`, both included.
struct SlotRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  bool operator==(const SlotRange&) const = default;
};

struct ClusterNode {
  std::string id;  ///< 40 hexadecimal digits, which the node keeps when its address changes
  Address address;

  bool operator==(const ClusterNode& other) const {
    return id == other.id && address.text == other.address.text;
  }
};

/// Which node serves which slots, as one node knew it at one time. A slot that is in no shard has
/// no owner.
struct ClusterShape {
  struct Shard {
    ClusterNode master;
    std::vector<ClusterNode> replicas;  ///< those that have not failed
    std::vector<SlotRange> slots;       ///< in ascending order

    bool operator==(const Shard&) const = default;
  };
  std::vector<Shard> shards;  ///< in the order of their first slots

  bool operator==(const ClusterShape&) const = default;
};
/// An address as nodes name it: an IPv6 `host` comes without brackets.
[[nodiscard]] Address node_address(std::string_view host, std::uint16_t port);

/// The status for an error that a server answers to a command of clusters: its own words, and what
/// to change.
[[nodiscard]] Status refused_by_cluster(std::string_view command, std::string_view error);

/// Reads the reply to CLUSTER SLOTS of Redis 6.2 and later. A node that does not know its own host,
/// or whose host it must not tell, is reached at `host_that_answered`. A reply that contradicts
/// itself is an error. Free of I/O.
[[nodiscard]] Result<ClusterShape> read_cluster_slots(const Reply& reply,
                                                      std::string_view host_that_answered);

}  // namespace fcap::redis
