#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "updater/pipeline/rewind.h"

namespace fcap::updater {

/// An offset for people.
inline std::string describe(std::optional<std::int64_t> offset) {
  return offset ? std::to_string(*offset) : "none";
}

/// Where everything is claimed to be there, but for gaps.
inline std::optional<std::int64_t> position_of(const std::optional<Claim>& claim) {
  return claim ? std::optional(claim->position) : std::nullopt;
}

/// What a mark claims, for people.
inline std::string describe(const std::optional<Claim>& claim) {
  if (!claim || claim->gaps.empty()) return describe(position_of(claim));
  return std::to_string(claim->position) + " with " + std::to_string(offsets_in(claim->gaps)) +
         " offsets in gaps";
}

}  // namespace fcap::updater
