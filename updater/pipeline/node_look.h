#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "updater/pipeline/shard_marks.h"

namespace fcap::updater {

/// What a node of a cluster says of itself and of the others.
struct NodeLook {
  struct Master {
    std::string id;
    std::string address;             ///< "ip:port"
    std::string named_address = {};  ///< "hostname:port"; empty: it announces no hostname
    bool has_slots = false;
  };

  bool is_master = false;
  ShardLook self;
  /// All masters, this one included, that have not failed, as far as it knows.
  std::vector<Master> masters;
};

/// Reads the answers to CLUSTER NODES and INFO replication. nullopt: they are not such answers.
[[nodiscard]] std::optional<NodeLook> read_node_look(std::string_view cluster_nodes,
                                                     std::string_view info_replication);

}  // namespace fcap::updater
