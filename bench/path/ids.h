#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <xxhash.h>

namespace fcap::bench {

/// A number that looks random, the same for the same one.
inline std::uint64_t mixed(std::uint64_t number) {
  return XXH3_64bits(&number, sizeof number);
}

/// An id of 36 characters, from a number of a kind: equal pairs give equal ids.
inline std::string uuid(std::uint64_t kind, std::uint64_t number) {
  const std::uint64_t high = mixed(number * 16 + kind * 2);
  const std::uint64_t low = mixed(number * 16 + kind * 2 + 1);
  return fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", high >> 32U, (high >> 16U) & 0xFFFFU,
                     high & 0xFFFU, low >> 52U, low & 0xFFFFFFFFFFFFU);
}
inline constexpr std::uint64_t kUserIds = 1;
inline constexpr std::uint64_t kImpressionIds = 2;
inline constexpr std::uint64_t kProbeIds = 3;

}  // namespace fcap::bench
