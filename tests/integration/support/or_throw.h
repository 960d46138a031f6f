#pragma once

#include <stdexcept>
#include <utility>

#include <fcap/status.h>

namespace fcap::testing {

/// For what must succeed: a failure becomes a std::runtime_error with its text.
inline void or_throw(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
}
template <typename T>
[[nodiscard]] T or_throw(Result<T> result) {
  or_throw(result.status());
  return std::move(result).value();
}

}  // namespace fcap::testing
