#include "redis/direct_connections.h"

#include <algorithm>
#include <utility>

namespace fcap::redis {
namespace {

// A breaker looks back one second.
constexpr std::chrono::seconds kRecent{1};
// Looking at what callers count takes it from their caches.
constexpr std::chrono::milliseconds kSuccessesEvery{100};

}  // namespace

DirectConnections::DirectConnections(SharedState& shared, Poller& poller, const Address& address,
                                     const base::Jitter& jitter)
    : shared_(shared), poller_(poller) {
  for (std::size_t i = 0; i < shared.options.direct_connections; ++i) {
    connections_.push_back(std::make_unique<DirectConnection>(
        shared, poller, address,
        base::Backoff(shared.options.reconnect_backoff_min, shared.options.reconnect_backoff_max,
                      jitter)));
  }
}

bool DirectConnections::read(std::string_view key, TimePoint deadline,
                             StoreCompletion& done) noexcept {
  if (!wanted_.load(std::memory_order_relaxed)) {
    if (!wanted_.exchange(true, std::memory_order_relaxed)) poller_.wake();
    return false;
  }
  for (const auto& connection : connections_) {
    if (connection->try_take()) return connection->read(key, deadline, done);
  }
  return false;
}

std::uint64_t DirectConnections::reads() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& connection : connections_) sum += connection->reads();
  return sum;
}

void DirectConnections::on_link_ready(const Endpoint& endpoint, const std::string& server_name) {
  endpoint_ = endpoint;
  server_name_ = server_name;
}

void DirectConnections::on_link_gone(TimePoint now) {
  endpoint_.reset();
  for (const auto& connection : connections_) connection->retire(now);
}

DirectConnections::Met DirectConnections::tick(TimePoint now) {
  Met met;
  if (!wanted_.load(std::memory_order_relaxed)) return met;
  const bool stopping = shared_.direct_stopping.load();
  if (stopping) on_link_gone(now);
  for (const auto& connection : connections_) {
    if (stopping) connection->interrupt();
    if (endpoint_) connection->aim_at(*endpoint_, server_name_);
    met.failures += connection->tick(now);
  }
  const auto pause = now - seen_at_;
  if (met.failures == 0 && pause < kSuccessesEvery) return met;
  const std::uint64_t seen = reads();
  met.answers = seen - std::exchange(reads_seen_, seen);
  // Most of what was answered while the I/O thread slept is older than a breaker looks back.
  if (pause > kRecent) met.answers = std::min<std::size_t>(met.answers, 1);
  seen_at_ = now;
  return met;
}

DirectConnections::TimePoint DirectConnections::next_time() const noexcept {
  TimePoint next = TimePoint::max();
  for (const auto& connection : connections_) next = std::min(next, connection->next_time());
  return next;
}

void DirectConnections::shut_down(TimePoint now) {
  for (const auto& connection : connections_) connection->shut_down(now);
}

void DirectConnections::close_descriptors() noexcept {
  for (const auto& connection : connections_) connection->close_descriptor();
}

}  // namespace fcap::redis
