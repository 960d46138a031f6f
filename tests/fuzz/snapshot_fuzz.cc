#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <xxhash.h>

#include "rule_text/snapshot.h"

namespace {

std::string with_header(const char* form, std::string_view payload) {
  std::array<char, 64> header{};
  std::snprintf(header.data(), header.size(), form, payload.size(),
                static_cast<unsigned long long>(XXH3_64bits(payload.data(), payload.size())));
  return std::string(header.data()).append(payload);
}

// What can be read can be written, and is then read as the same.
void check(const std::string& bytes) {
  const auto parsed = fcap::rule_text::parse_snapshot(bytes);
  if (!parsed.ok()) {
    if (parsed.status().code() != fcap::StatusCode::kCorrupt) std::abort();
    return;
  }
  const std::string written = fcap::rule_text::snapshot_bytes(parsed.value());
  const auto again = fcap::rule_text::parse_snapshot(written);
  if (!again.ok() || fcap::rule_text::snapshot_bytes(again.value()) != written) std::abort();
}

}  // namespace

// Any bytes are refused unless header and payload agree, and any payload under its right header
// gets as far as the reader of the format.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  check(with_header("fcap-rules 4 %020zu %016llx\n", bytes));
  return 0;
}
