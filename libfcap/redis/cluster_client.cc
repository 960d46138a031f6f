#include "redis/cluster_client.h"

#include <algorithm>
#include <string>
#include <utility>

#include "redis/direct_connections.h"

namespace fcap::redis {

ClusterClient::ClusterClient(SharedState& shared, Resolver& resolver, const Threads& threads,
                             std::vector<Address> seeds)
    : shared_(shared),
      resolver_(resolver),
      threads_(threads),
      state_(shared.options.queue_operations_max) {
  shared_.cluster = &state_;
  const auto report = [this](LogLevel level, const std::string& text) {
    if (level == LogLevel::kWarning) shared_.set_last_error(text, nullptr);
    shared_.log_thinned(level, "redis: " + text);
  };
  const auto changed = [this](const ClusterShape& shape) { take_shape(shape); };
  const auto refreshed = [this](const ClusterShape& shape) { look_up_replicas(shape); };
  const auto credentials = [this] { return shared_.credentials.current(); };
  watch_ = std::make_unique<ClusterWatch>(shared_.options, std::move(seeds), credentials,
                                          state_.nodes, state_.slots, report, changed, refreshed);
  state_.refresh = [this] { watch_->refresh_soon(); };
}

ClusterClient::~ClusterClient() = default;

// On the watch's thread.
void ClusterClient::take_shape(const ClusterShape& shape) {
  state_.take_shape(shape);
  for (const auto& thread : threads_) thread->wake();
}

// With each refresh, because a name that had no address may have one now, and a replica may come
// back at another one.
void ClusterClient::look_up_replicas(const ClusterShape& shape) {
  if (shared_.options.replica_reads == RedisReplicaReads::kNever) return;
  for (const ClusterShape::Shard& shard : shape.shards) {
    for (const ClusterNode& replica : shard.replicas) {
      if (!numeric_endpoints(replica.address).empty()) continue;
      {
        // While a name service hangs, the lookups of all refreshes must not pile up.
        const std::lock_guard lock(lookups_mutex_);
        if (!lookups_.insert(replica.address.text).second) continue;
      }
      resolver_.resolve(replica.address,
                        [this, address = replica.address](const Result<Endpoints>& found) {
                          if (found.ok() && !found.value().empty()) {
                            state_.take_endpoint(address, found.value().front());
                          }
                          const std::lock_guard lock(lookups_mutex_);
                          lookups_.erase(address.text);
                        });
    }
  }
}

Status ClusterClient::start() {
  return watch_->start();
}

void ClusterClient::close_descriptors() noexcept {
  watch_->close_descriptors();
}

void ClusterClient::submit(IoThread& thread, Request& request) noexcept {
  const NodeIndex node =
      request.only_node ? *request.only_node : state_.slots.node_of(request.slot);
  if (node == SlotMap::kNone) {
    state_.refresh_soon();
    return request.on_done(TransportCode::kUnavailable);
  }
  // One that has not been made yet is made by the thread.
  if (const Link* const link = thread.links().link(node)) {
    const auto refusal = link->refusal();
    if (refusal && !(request.may_be_stale && link->reads_replica())) {
      return request.on_done(*refusal);
    }
  }
  request.node = node;
  request.asking = false;
  request.hops = 0;
  std::atomic<std::size_t>& of_node = state_.node(node).operations;
  if (of_node.fetch_add(1, std::memory_order_relaxed) < state_.node_operations_max()) {
    if (shared_.operations.fetch_add(1, std::memory_order_relaxed) <
        shared_.options.queue_operations_max) {
      return thread.push(request);
    }
    shared_.operations.fetch_sub(1, std::memory_order_relaxed);
  }
  of_node.fetch_sub(1, std::memory_order_relaxed);
  request.on_done(TransportCode::kOverloaded);
}

bool ClusterClient::read(std::string_view key, std::chrono::steady_clock::time_point deadline,
                         StoreCompletion& done) noexcept {
  const NodeIndex node = state_.slots.node_of(slot_of(key));
  if (node == SlotMap::kNone) return false;
  const Link* const link = threads_.front()->links().link(node);
  if (link == nullptr || link->direct() == nullptr) return false;
  const std::size_t others = state_.node(node).operations.load(std::memory_order_relaxed);
  return others < shared_.options.direct_connections && !link->refusal() &&
         !link->reads_replica() && link->direct()->read(key, deadline, done);
}

std::uint64_t ClusterClient::epoch(std::uint16_t slot) const noexcept {
  const NodeIndex node = state_.slots.node_of(slot);
  return node == SlotMap::kNone ? 0 : state_.node(node).epoch.load(std::memory_order_acquire);
}

std::optional<NodeIndex> ClusterClient::node_at(std::string_view address) {
  const auto parsed = parse_address(address);
  return parsed.ok() ? state_.nodes.index_of(parsed.value()) : std::nullopt;
}

std::uint64_t ClusterClient::epoch_of_node(NodeIndex node) const noexcept {
  return state_.node(node).epoch.load(std::memory_order_acquire);
}

bool ClusterClient::is_ready(NodeIndex node) const noexcept {
  return std::ranges::all_of(threads_, [node](const auto& thread) {
    const Link* const link = thread->links().link(node);
    return link != nullptr && link->is_ready();
  });
}

bool ClusterClient::connected() const noexcept {
  const auto [masters, ready] =
      state_.count_masters([this](NodeIndex node) { return is_ready(node); });
  return masters != 0 && ready == masters;
}

std::vector<ClusterShard> ClusterClient::shards() {
  std::vector<ClusterShard> shards;
  for (ClusterShape::Shard& shard : state_.shape().shards) {
    const auto node = state_.nodes.index_of(shard.master.address);
    if (shard.slots.empty() || !node) continue;
    shards.push_back(
        {.id = std::move(shard.master.id),
         .address = std::move(shard.master.address.text),
         .slots = std::move(shard.slots),
         .connection_epoch = state_.node(*node).epoch.load(std::memory_order_acquire)});
  }
  return shards;
}

void ClusterClient::add_health(StoreHealth& health) const {
  const auto add = [&health](const char* name, std::size_t value) {
    health.more.emplace_back(name, std::to_string(value));
  };
  std::size_t direct_reads = 0;
  for (std::size_t node = 0; node < state_.nodes.size(); ++node) {
    const Link* const link = threads_.front()->links().link(static_cast<NodeIndex>(node));
    if (link != nullptr && link->direct() != nullptr) direct_reads += link->direct()->reads();
  }
  const ClusterShape shape = state_.shape();
  std::size_t replicas = 0;
  std::size_t slots = 0;
  for (const ClusterShape::Shard& shard : shape.shards) {
    replicas += shard.replicas.size();
    for (const SlotRange& range : shard.slots) slots += range.last - range.first + 1U;
  }
  const auto [masters, ready] =
      state_.count_masters([this](NodeIndex node) { return is_ready(node); });
  add("cluster_masters", masters);
  add("cluster_masters_ready", ready);
  add("cluster_replicas", replicas);
  add("cluster_slots", slots);
  add("cluster_refreshes", watch_->refreshes());
  add("cluster_moved", state_.moved.load(std::memory_order_relaxed));
  if (shared_.options.direct_connections != 0) add("direct_reads", direct_reads);
  add("cluster_asked", state_.asked.load(std::memory_order_relaxed));
}

}  // namespace fcap::redis
