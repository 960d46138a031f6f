#pragma once

#include <cstdint>
#include <string>

namespace fcap::redis {

/// A tag such that every key with "{<tag>}" in it is in this slot of a cluster: the smallest number
/// that has this property. `slot` must be below kSlotCount. The first call computes all of them.
[[nodiscard]] const std::string& tag_of_slot(std::uint16_t slot);

}  // namespace fcap::redis
