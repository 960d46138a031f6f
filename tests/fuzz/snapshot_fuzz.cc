#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <xxhash.h>

#include "config/snapshot.h"

// Any bytes are refused unless header and payload agree, and any payload under its right header
// gets as far as the parser of rules.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto raw = fcap::config::parse_snapshot(bytes);
  if (raw.ok() && !fcap::config::snapshot_payload(bytes).ok()) std::abort();

  std::array<char, 64> header{};
  std::snprintf(header.data(), header.size(), "fcap-rules 1 %zu %016llx\n", size,
                static_cast<unsigned long long>(XXH3_64bits(data, size)));
  const std::string whole = std::string(header.data()).append(bytes);
  const auto payload = fcap::config::snapshot_payload(whole);
  if (!payload.ok() || payload.value() != bytes) std::abort();
  const auto parsed = fcap::config::parse_snapshot(whole);
  if (!parsed.ok() && parsed.status().code() != fcap::StatusCode::kCorrupt) std::abort();
  return 0;
}
