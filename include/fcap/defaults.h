#pragma once

#include <chrono>
#include <cstddef>

#include <fcap/cplusplus.h>

namespace fcap {

/// What a Checker, fcap-updater and the command assume of one Redis where nothing else is set. All
/// that work on the same Redis must agree on it.
inline constexpr std::chrono::days kDefaultRetention{32};
inline constexpr const char* kDefaultKeyPrefix = "fcap";
/// A user id that means "nobody", besides the empty one.
inline constexpr const char* kNullUserId = "00000000-0000-0000-0000-000000000000";
/// The longest record that the updater leaves behind.
inline constexpr std::size_t kDefaultRecordBytesMax = std::size_t{16} * 1024;
/// The longest that a reservation lasts.
inline constexpr std::chrono::minutes kDefaultReservationLifeMax{15};

}  // namespace fcap
