// Errors of a server: any bytes are safe, and a redirect leads to an address.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "redis/cluster_shape.h"
#include "redis/redirect.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view error(reinterpret_cast<const char*>(data), size);
  const auto redirect = fcap::redis::read_redirect(error);
  if (!redirect) return 0;
  if (redirect->slot >= fcap::redis::kSlotCount || redirect->port == 0) std::abort();
  const auto address = address_of(*redirect, fcap::redis::node_address("answered", 6379));
  if (address.host.empty() || address.port != redirect->port) std::abort();
  return 0;
}
