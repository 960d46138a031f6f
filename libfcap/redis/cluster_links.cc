#include "redis/cluster_links.h"

#include <algorithm>
#include <bitset>

#include "redis/redirect.h"

namespace fcap::redis {
namespace {

// A slot's former owner redirects a request to the next one, which may not know yet that the slot
// is its own.
constexpr std::uint8_t kHopsMax = 3;
// How long a link without slots stays connected: to a node that imports its first slots, say.
constexpr std::chrono::seconds kUselessMax{10};
constexpr std::chrono::seconds kRetireEvery{1};

}  // namespace

ClusterLinks::ClusterLinks(SharedState& shared, Poller& poller, Resolver& resolver, bool looks)
    : shared_(shared),
      cluster_(*shared.cluster),
      poller_(poller),
      resolver_(resolver),
      looks_(looks) {}

ClusterLinks::~ClusterLinks() = default;

// The node's link, made or woken up if need be.
Link& ClusterLinks::reach(NodeIndex node, TimePoint now) {
  Link* link = table_[node].load(std::memory_order_relaxed);
  if (link == nullptr) {
    made_.push_back(std::make_unique<Link>(
        shared_, poller_, resolver_, cluster_.nodes.address(node),
        Link::ClusterMembership{.links = this, .node = node, .looks = looks_}));
    link = made_.back().get();
    table_[node].store(link, std::memory_order_release);
  }
  if (!link->is_active() && !shared_.stopping.load(std::memory_order_relaxed)) {
    if (std::ranges::find(active_, node) == active_.end()) active_.push_back(node);
    link->start(now);
  }
  return *link;
}

void ClusterLinks::redirect(const Address& answered, Request* request, std::string_view error) {
  const auto redirect = read_redirect(error);
  const auto node = redirect ? cluster_.nodes.index_of(address_of(*redirect, answered))
                             : std::optional<NodeIndex>();
  if (!node) {
    shared_.note_error(answered.text + ": a redirect that cannot be followed: " +
                       std::string(error.substr(0, 256)));
    if (request != nullptr) request->on_done(TransportCode::kUnavailable);
    return;
  }
  const bool moved = redirect->kind == Redirect::Kind::kMoved;
  (moved ? cluster_.moved : cluster_.asked).fetch_add(1, std::memory_order_relaxed);
  if (moved) {
    cluster_.slots.correct(redirect->slot, *node);
    cluster_.refresh_soon();
  }
  if (request == nullptr) return;
  if (request->hops == kHopsMax) {
    shared_.note_error(answered.text +
                       ": a request was redirected too often: " + std::string(error));
  }
  if (request->epoch || request->only_node || request->hops == kHopsMax) {
    return request->on_done(TransportCode::kUnavailable);
  }
  ++request->hops;
  request->asking = !moved;
  request->by_replica = false;
  request->node = *node;
  shared_.operations.fetch_add(1, std::memory_order_relaxed);
  cluster_.node(*node).operations.fetch_add(1, std::memory_order_relaxed);
  admit(*request, std::chrono::steady_clock::now());
}

// --- Which links there are.

void ClusterLinks::follow_map(TimePoint now) {
  const std::uint64_t shapes = cluster_.shapes();
  if (shapes == shapes_ && now < retire_at_) return;
  shapes_ = shapes;
  std::bitset<kClusterNodesMax> owners;
  for (std::size_t slot = 0; slot < kSlotCount; ++slot) {
    const NodeIndex node = cluster_.slots.node_of(static_cast<std::uint16_t>(slot));
    if (node != SlotMap::kNone) owners.set(node);
  }
  for (std::size_t node = 0; node < cluster_.nodes.size(); ++node) {
    if (owners.test(node)) reach(static_cast<NodeIndex>(node), now);
  }
  retire_at_ = TimePoint::max();
  std::erase_if(active_, [&](NodeIndex node) {
    if (owners.test(node)) return false;
    // A retired link stays for one more round, in which callers give back its direct connections.
    if (!link(node)->is_active()) return true;
    if (link(node)->retire(now, kUselessMax)) link(node)->tick(now);
    retire_at_ = now + kRetireEvery;
    return false;
  });
}

void ClusterLinks::tick(TimePoint now) {
  needs_tick_ = false;
  follow_map(now);
  // Callbacks may lead to further nodes.
  for (std::size_t i = 0; i < active_.size(); ++i) link(active_[i])->tick(now);
}

bool ClusterLinks::holds_back() const noexcept {
  return std::ranges::any_of(active_, [this](NodeIndex node) { return link(node)->holds_back(); });
}

void ClusterLinks::send_held(TimePoint now) {
  for (std::size_t i = 0; i < active_.size(); ++i) link(active_[i])->send_held(now);
}

void ClusterLinks::send_early() {
  needs_tick_ = true;
  for (const NodeIndex node : active_) link(node)->send_early();
}

ClusterLinks::TimePoint ClusterLinks::next_time() const noexcept {
  if (cluster_.shapes() != shapes_) return TimePoint::min();
  TimePoint next = retire_at_;
  for (const NodeIndex node : active_) next = std::min(next, link(node)->next_time());
  return next;
}

void ClusterLinks::woke(TimePoint asleep_at, TimePoint planned, TimePoint now) noexcept {
  for (const NodeIndex node : active_) link(node)->woke(asleep_at, planned, now);
}

void ClusterLinks::shut_down() {
  for (const auto& link : made_) link->shut_down();
}

void ClusterLinks::close_descriptors() noexcept {
  for (const auto& entry : table_) {
    if (Link* const link = entry.load(std::memory_order_acquire)) link->close_descriptor();
  }
}

}  // namespace fcap::redis
