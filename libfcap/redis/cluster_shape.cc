#include "redis/cluster_shape.h"

#include <algorithm>
#include <bitset>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace fcap::redis {
namespace {

constexpr std::size_t kNodeIdBytesMax = 64;
constexpr std::size_t kPortMax = 65'535;

Status bad_reply(const std::string& why) {
  return Status::error(StatusCode::kUnavailable, "CLUSTER SLOTS: " + why, true);
}

std::string cluster_hint(std::string_view error) {
  if (error.find("cluster support disabled") != std::string_view::npos) {
    return " (topology is cluster, but this is a single server: set the option topology to single, "
           "or name nodes of a cluster in the option addresses)";
  }
  if (error.starts_with("NOAUTH")) return " (set the option password)";
  if (error.starts_with("NOPERM")) {
    return " (allow the commands cluster|info and cluster|slots to the account of the option user)";
  }
  if (error.find("unknown command") != std::string_view::npos) {
    return " (this is no node of a cluster: with topology cluster the option addresses must name "
           "nodes of one)";
  }
  return {};
}

// Reads the replies' nodes and slots into shards, and finds what contradicts itself.
class ShapeReader {
 public:
  explicit ShapeReader(std::string_view host_that_answered) : host_(host_that_answered) {}

  // One range of slots with its nodes, the master first.
  Status add(const Reply& range);
  ClusterShape finish();

 private:
  // Nothing: the node has no address that anyone could use.
  Result<std::optional<ClusterNode>> read_node(const Reply& node);
  Status add_slots(SlotRange range);
  Result<ClusterShape::Shard*> shard_of(const ClusterNode& master, std::span<const Reply> replicas);

  std::string_view host_;
  std::bitset<kSlotCount> owned_;
  std::vector<ClusterShape::Shard> shards_;
  std::unordered_map<std::string, std::size_t> shard_by_master_;  // by id
  std::unordered_set<std::string> master_addresses_;
  std::unordered_set<std::string> ids_;
};

// Looks a name up in name, value, name, value…; empty: it is not there.
std::string_view metadata_of(const Reply& node, std::string_view name) noexcept {
  if (node.elements.size() < 4) return {};
  const auto fields = node.elements[3].elements;
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    if (fields[i].text == name) return fields[i + 1].text;
  }
  return {};
}

bool is_number(const Reply& reply, std::size_t value_max) noexcept {
  return reply.kind == Reply::Kind::kInteger && reply.integer >= 0 &&
         static_cast<std::uint64_t>(reply.integer) <= value_max;
}

bool is_text(const Reply& reply) noexcept {
  return reply.kind == Reply::Kind::kString || reply.kind == Reply::Kind::kStatus;
}

Result<std::optional<ClusterNode>> ShapeReader::read_node(const Reply& node) {
  if (node.kind != Reply::Kind::kArray || node.elements.size() < 3) {
    return bad_reply("a node is not described by host, port and id");
  }
  const Reply& host = node.elements[0];
  const Reply& port = node.elements[1];
  const Reply& id = node.elements[2];
  if (!is_text(id) || id.text.empty() || id.text.size() > kNodeIdBytesMax) {
    return bad_reply("a node has no id");
  }
  if (!is_text(host) && host.kind != Reply::Kind::kNil) {
    return bad_reply("node " + std::string(id.text) + " has no host");
  }
  if (!is_number(port, kPortMax)) {
    return bad_reply("node " + std::string(id.text) + " has an invalid port");
  }
  if (ids_.insert(std::string(id.text)).second && ids_.size() > kClusterNodesMax) {
    return bad_reply("more than " + std::to_string(kClusterNodesMax) + " nodes");
  }
  // The cluster has lost the address of such a node: another node answers there.
  if (port.integer == 0) return std::optional<ClusterNode>();
  // The first is what the option cluster-preferred-endpoint-type chose. "?" is a hostname that
  // nobody has set.
  std::string_view name = host.text;
  if (name == "?") name = metadata_of(node, "ip");
  if (name.empty()) name = host_;
  if (!is_host(name)) {
    return bad_reply("node " + std::string(id.text) + " has an invalid host");
  }
  return std::optional(ClusterNode{std::string(id.text),
                                   node_address(name, static_cast<std::uint16_t>(port.integer))});
}

Status ShapeReader::add_slots(SlotRange range) {
  for (std::size_t slot = range.first; slot <= range.last; ++slot) {
    if (owned_[slot]) return bad_reply("slot " + std::to_string(slot) + " has two owners");
    owned_.set(slot);
  }
  return {};
}

Result<ClusterShape::Shard*> ShapeReader::shard_of(const ClusterNode& master,
                                                   std::span<const Reply> replicas) {
  const auto [found, is_new] = shard_by_master_.emplace(master.id, shards_.size());
  if (!is_new) {
    ClusterShape::Shard& shard = shards_[found->second];
    if (shard.master == master) return &shard;
    return bad_reply("node " + master.id + " has two addresses, " + shard.master.address.text +
                     " and " + master.address.text);
  }
  if (!master_addresses_.insert(master.address.text).second) {
    return bad_reply("two masters have the address " + master.address.text +
                     " (what do the nodes' settings cluster-announce-ip, cluster-announce-hostname "
                     "and cluster-announce-port say?)");
  }
  ClusterShape::Shard shard{master, {}, {}};
  for (const Reply& replica : replicas) {
    auto node = read_node(replica);
    if (!node.ok()) return node.status();
    if (node.value()) shard.replicas.push_back(*std::move(node).value());
  }
  shards_.push_back(std::move(shard));
  return &shards_.back();
}

Status ShapeReader::add(const Reply& range) {
  const auto parts = range.elements;
  if (range.kind != Reply::Kind::kArray || parts.size() < 3) {
    return bad_reply("a range is not described by its first slot, its last one and its nodes");
  }
  if (!is_number(parts[0], kSlotCount - 1) || !is_number(parts[1], kSlotCount - 1) ||
      parts[0].integer > parts[1].integer) {
    return bad_reply("a range of slots is not within 0-" + std::to_string(kSlotCount - 1));
  }
  const SlotRange slots{static_cast<std::uint16_t>(parts[0].integer),
                        static_cast<std::uint16_t>(parts[1].integer)};
  if (Status added = add_slots(slots); !added.ok()) return added;
  const auto master = read_node(parts[2]);
  if (!master.ok()) return master.status();
  if (!master.value()) return {};  // until a replica takes over, nobody serves these slots
  const auto shard = shard_of(*master.value(), parts.subspan(3));
  if (!shard.ok()) return shard.status();
  shard.value()->slots.push_back(slots);
  return {};
}

ClusterShape ShapeReader::finish() {
  const auto first_of = [](const auto& ordered) { return ordered.slots.front().first; };
  for (ClusterShape::Shard& shard : shards_) {
    std::ranges::sort(shard.slots, {}, &SlotRange::first);
  }
  std::ranges::sort(shards_, {}, first_of);
  return {std::move(shards_)};
}

}  // namespace

Address node_address(std::string_view host, std::uint16_t port) {
  Address address;
  address.host = std::string(host);
  address.port = port;
  const bool is_v6 = host.find(':') != std::string_view::npos;
  address.text = (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(port);
  return address;
}

Status refused_by_cluster(std::string_view command, std::string_view error) {
  return Status::error(StatusCode::kUnavailable,
                       std::string(command) + ": " + std::string(error) + cluster_hint(error),
                       true);
}

Result<ClusterShape> read_cluster_slots(const Reply& reply, std::string_view host_that_answered) {
  if (reply.kind == Reply::Kind::kError) return refused_by_cluster("CLUSTER SLOTS", reply.text);
  if (reply.kind != Reply::Kind::kArray) return bad_reply("the reply is not a list of ranges");
  ShapeReader reader(host_that_answered);
  for (const Reply& range : reply.elements) {
    if (Status added = reader.add(range); !added.ok()) return added;
  }
  return reader.finish();
}

}  // namespace fcap::redis
