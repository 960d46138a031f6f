#include "redis/believed_shape.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

namespace fcap::redis {
namespace {

Status not_believed(std::string why) {
  return Status::error(StatusCode::kConflict, std::move(why), true);
}

// Reads "name:value\r\n" lines.
std::optional<std::string_view> info_line(std::string_view lines, std::string_view name) noexcept {
  while (!lines.empty()) {
    const auto end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    if (line.starts_with(name)) return line.substr(name.size());
    if (end == std::string_view::npos) break;
    lines.remove_prefix(end + 2);
  }
  return std::nullopt;
}

template <typename Visit>
void visit_ids(const ClusterShape& shape, Visit&& visit) {
  for (const ClusterShape::Shard& shard : shape.shards) {
    visit(shard.master.id);
    for (const ClusterNode& replica : shard.replicas) visit(replica.id);
  }
}

}  // namespace

Status read_cluster_info(const Reply& reply, ClusterView& view) {
  if (reply.kind == Reply::Kind::kError) return refused_by_cluster("CLUSTER INFO", reply.text);
  const auto state = info_line(reply.text, "cluster_state:");
  const auto epoch = info_line(reply.text, "cluster_current_epoch:");
  const char* const end = epoch ? epoch->data() + epoch->size() : nullptr;
  if (!state || !epoch || std::from_chars(epoch->data(), end, view.epoch).ptr != end) {
    return Status::error(StatusCode::kUnavailable,
                         "CLUSTER INFO: the reply does not tell cluster_state and "
                         "cluster_current_epoch",
                         true);
  }
  view.serves = *state == "ok";
  return {};
}

// The map must not go back to an older one, and no single sign shows which of two is older:
// - A master that a partition has cut off keeps its map of before the failover. At first only the
//   lower epoch shows it, which the failover has raised on the other side.
// - After cluster-node-timeout it says cluster_state:fail. From then on its epoch proves nothing,
//   because a replica that is cut off raises its own with each election that it tries to win. So a
//   node that does not serve is believed only as long as none was that does: then its map is at
//   least one of where the nodes are, and no node in it executes anything.
// - A node's address may have been given to a node of another cluster, whose epochs count
//   differently. Only the addresses in the options may say that the cluster is another one now.
// If all nodes have gone back (restored from copies of nodes.conf), the map stays as it is, and
// each MOVED still corrects it.
Status BelievedShape::accept(ClusterView view, bool from_seed) {
  if (view.shape.shards.empty()) {
    return not_believed("it knows no node that serves a slot (has the cluster been created?)");
  }
  if (shape_ && serves_ && !view.serves) {
    return not_believed("its cluster is down (cluster_state is not ok), so it may be cut off");
  }
  const bool is_better = shape_ && !serves_ && view.serves;
  const bool is_other = shape_ && !knows_any_of(view.shape);
  if (is_other && !from_seed) {
    return not_believed("it is of another cluster: none of its nodes was in this one");
  }
  if (shape_ && !is_other && !is_better && view.epoch < epoch_) {
    return not_believed("what it knows is old: its epoch is " + std::to_string(view.epoch) +
                        ", and " + std::to_string(epoch_) + " has been seen");
  }
  epoch_ = view.epoch;
  serves_ = view.serves;
  if (!shape_ || *shape_ != view.shape) {
    shape_ = std::make_shared<const ClusterShape>(std::move(view.shape));
  }
  return {};
}

bool BelievedShape::knows_any_of(const ClusterShape& shape) const {
  std::set<std::string_view> known;
  visit_ids(*shape_, [&](const std::string& id) { known.insert(id); });
  bool found = false;
  visit_ids(shape, [&](const std::string& id) { found = found || known.contains(id); });
  return found;
}

}  // namespace fcap::redis
