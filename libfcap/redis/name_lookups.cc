#include "redis/name_lookups.h"

#include <poll.h>

namespace fcap::redis {
namespace {

constexpr std::chrono::milliseconds kLookForStop{20};

}  // namespace

Result<Endpoints> NameLookups::look_up(const Address& address, TimePoint until) {
  if (auto endpoints = numeric_endpoints(address); !endpoints.empty()) return endpoints;
  std::shared_ptr<NameLookup>& lookup = lookups_[address.text];
  if (lookup == nullptr) {
    lookup = std::make_shared<NameLookup>();
    resolver_.resolve(address, [answer = lookup](Result<Endpoints> endpoints) {
      const std::lock_guard lock(answer->mutex);
      answer->endpoints = std::move(endpoints);
      answer->wake.notify_all();
    });
  }
  const auto pending = lookup;
  std::unique_lock lock(pending->mutex);
  while (!pending->endpoints && std::chrono::steady_clock::now() < until && !is_stopping()) {
    pending->wake.wait_for(lock, kLookForStop);
  }
  if (!pending->endpoints) {
    return Status::error(StatusCode::kUnavailable,
                         "cannot resolve \"" + address.host + "\" in time", true);
  }
  lookups_.erase(address.text);
  return *pending->endpoints;
}

bool NameLookups::is_stopping() const noexcept {
  pollfd stop = {stop_fd_, POLLIN, 0};
  return ::poll(&stop, 1, 0) > 0;
}

}  // namespace fcap::redis
