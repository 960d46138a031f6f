// What a Link to a node of a cluster does beyond others.
#include "redis/cluster_links.h"
#include "redis/link.h"
#include "redis/replica_link.h"

namespace fcap::redis {

void Link::redirect(Request* request, std::string_view error) {
  member_.links->redirect(address_, request, error);
}

void Link::count_ready(bool ready) noexcept {
  ready_.store(ready, std::memory_order_relaxed);
  if (ready) {
    shared_.links_ready.fetch_add(1, std::memory_order_relaxed);
  } else {
    shared_.links_ready.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Link::advance_epoch() noexcept {
  const std::uint64_t next = shared_.epoch.fetch_add(1, std::memory_order_release) + 1;
  if (node_ != nullptr) node_->epoch.store(next, std::memory_order_release);
}

std::uint64_t Link::epoch() const noexcept {
  return (node_ != nullptr ? node_->epoch : shared_.epoch).load(std::memory_order_acquire);
}

// Whether this link is the one to read the writer's configuration by.
bool Link::looks_at(const std::string& key) const noexcept {
  return node_ == nullptr || shared_.cluster->slots.node_of(slot_of(key)) == member_.node;
}

bool Link::retire(TimePoint now, std::chrono::seconds idle_min) {
  if (!pipeline_.idle() || now - admitted_at_ < idle_min) return false;
  report(LogLevel::kInfo, "not connected any more: the node has no slots");
  close_connection();
  if (replica_) replica_->rest(now);
  rest(now);
  state_until_ = TimePoint::max();
  backoff_.reset();
  // As it was in the beginning: the next request connects it.
  active_ = false;
  first_attempt_ = true;
  breaker_.on_probe_success(now);
  update_gate();
  shared_.clear_last_error(this);
  return true;
}

}  // namespace fcap::redis
