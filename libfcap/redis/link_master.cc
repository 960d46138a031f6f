// How a Link finds the master and stays with it: with Sentinels, and where only a master will do.
#include <utility>

#include "redis/link.h"
#include "redis/sentinels.h"

namespace fcap::redis {

// Empty: resolve() has to find them.
Endpoints Link::known_endpoints() const {
  return shared_.sentinels != nullptr ? Endpoints{} : numeric_endpoints(address_);
}

void Link::resolve() {
  Resolver::Callback take = [this](Result<Endpoints> endpoints) {
    {
      const std::lock_guard lock(resolved_mutex_);
      resolved_ = std::move(endpoints);
      has_resolved_.store(true, std::memory_order_release);
    }
    poller_.wake();
  };
  if (shared_.sentinels != nullptr) return shared_.sentinels->find(std::move(take));
  resolver_.resolve(address_, std::move(take));
}

// Says whose certificate is expected.
std::string Link::server_name() const {
  return shared_.sentinels != nullptr ? shared_.sentinels->master_host() : address_.host;
}

void Link::note_peer(const Endpoint& endpoint) {
  if (shared_.sentinels == nullptr) return;
  peer_ = endpoint.text();
  server_name_ = address_.text + " (" + peer_ + ")";
}

// Asks the Sentinels, or the nodes of the cluster, for the server's address again: it may have been
// replaced since they named it.
void Link::doubt_server() {
  if (shared_.sentinels != nullptr) shared_.sentinels->doubt();
  if (node_ != nullptr) shared_.cluster->refresh_soon();
}

// Why the server that was greeted is refused although records could be read from it.
std::string Link::why_no_master(const SharedState& shared, const ServerFacts& facts) {
  if (shared.cluster != nullptr) {
    if (facts.role != ServerRole::kReplica) return {};
    return "this is a " + facts.role_text +
           ": a failover of the cluster has begun, and the slot map is asked for again";
  }
  const bool by_sentinels = shared.sentinels != nullptr;
  if (!by_sentinels && !shared.options.master_only) return {};
  if (facts.role == ServerRole::kReplica) {
    return "this is a " + facts.role_text +
           (by_sentinels ? ": the Sentinels named it as the master, and may not have heard of a "
                           "failover yet"
                         : ": the option addresses must name the master, or Sentinels with the "
                           "option topology set to sentinel");
  }
  // An account that may not ask is no reason to refuse a server that the options name, but there is
  // no other way to tell a master that was demoted.
  if (by_sentinels && facts.role == ServerRole::kUnknown) {
    return "it refuses to tell its role, which topology sentinel needs: allow the command ROLE "
           "(+role) to the account of the option user";
  }
  return {};
}

// Leaves a server that answers although the Sentinels name another one: it was replaced, and what
// is written to it will be lost.
void Link::follow_master(TimePoint now) {
  if (shared_.sentinels == nullptr || state_ != State::kReady) return;
  const std::uint64_t change = shared_.sentinels->changes();
  if (std::exchange(master_change_, change) == change) return;
  if (shared_.sentinels->is_master(peer_)) return;
  end_renewal();  // the next connection may lead to the former master, too
  lose("the Sentinels name another master: " + shared_.sentinels->master_text(), now);
}

}  // namespace fcap::redis
