#include "ledger/ids.h"

#include <xxhash.h>

namespace fcap::ledger {

std::uint64_t id_hash(std::string_view id) noexcept {
  if (id.empty()) return 0;
  constexpr std::uint64_t kLow48 = (std::uint64_t{1} << 48) - 1;
  const std::uint64_t hash = XXH3_64bits(id.data(), id.size()) & kLow48;
  return hash == 0 ? 1 : hash;
}

std::uint32_t fingerprint(std::string_view event_id) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits(event_id.data(), event_id.size()));
}

}  // namespace fcap::ledger
