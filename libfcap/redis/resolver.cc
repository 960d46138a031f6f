#include "redis/resolver.h"

#include <cstring>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "base/thread.h"

namespace fcap::redis {
namespace {

Result<Endpoints> look_up(const Address& address, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return Status::error(StatusCode::kUnavailable,
                         "cannot resolve \"" + address.host + "\": " + gai_strerror(error), true);
  }
  Endpoints endpoints;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    Endpoint endpoint;
    if (info->ai_addrlen > sizeof(endpoint.storage)) continue;
    std::memcpy(&endpoint.storage, info->ai_addr, info->ai_addrlen);
    endpoint.length_bytes = info->ai_addrlen;
    endpoints.push_back(endpoint);
  }
  freeaddrinfo(found);
  return endpoints;
}

}  // namespace

Endpoints numeric_endpoints(const Address& address) {
  if (address.path.empty()) {
    const auto found = look_up(address, AI_NUMERICHOST);
    return found.ok() ? found.value() : Endpoints{};
  }
  Endpoint endpoint;
  auto& unix_address = reinterpret_cast<sockaddr_un&>(endpoint.storage);
  unix_address.sun_family = AF_UNIX;
  std::memcpy(unix_address.sun_path, address.path.c_str(), address.path.size() + 1);
  endpoint.length_bytes = sizeof(sockaddr_un);
  return {endpoint};
}

Resolver::~Resolver() {
  bool looking = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->jobs.clear();
    looking = state_->looking;
  }
  state_->wake.notify_all();
  if (!thread_.joinable()) return;
  if (looking) {
    base::detach(std::move(thread_));
  } else {
    thread_.join();
  }
}

void Resolver::resolve(const Address& address, Callback callback) {
  const std::lock_guard lock(state_->mutex);
  state_->jobs.push_back({address, std::move(callback)});
  if (!thread_.joinable()) {
    auto started = base::start_thread(
        "fcap-resolve", [state = state_] { run(*state); }, hook_);
    if (!started.ok()) {
      state_->jobs.back().callback(started.status());
      state_->jobs.pop_back();
      return;
    }
    thread_ = std::move(started).value();
  }
  state_->wake.notify_all();
}

void Resolver::run(State& state) {
  std::unique_lock lock(state.mutex);
  for (;;) {
    state.wake.wait(lock, [&state] { return state.stopping || !state.jobs.empty(); });
    if (state.stopping) return;
    const ResolverJob job = std::move(state.jobs.front());
    state.jobs.pop_front();
    state.looking = true;
    lock.unlock();
    auto found = look_up(job.address, 0);
    lock.lock();
    state.looking = false;
    if (state.stopping) return;
    // The mutex is held, so that no callback is running once the destructor has had it.
    job.callback(std::move(found));
  }
}

}  // namespace fcap::redis
