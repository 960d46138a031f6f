#pragma once

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace fcap::ledger {

/// Leaves new elements as they are, so that a column that is about to be filled is not zeroed
/// first: a third of the cost of decoding a small record.
template <typename T>
struct UninitializedAllocator : std::allocator<T> {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  template <typename U>
  struct rebind {  // NOLINT(readability-identifier-naming): the name that std::vector asks for
    using other = UninitializedAllocator<U>;
  };

  UninitializedAllocator() = default;
  template <typename U>
  explicit UninitializedAllocator(const UninitializedAllocator<U>& /*other*/) noexcept {}

  template <typename U>
  void construct(U* /*element*/) noexcept {}
  template <typename U, typename... Args>
  void construct(U* element, Args&&... args) {
    std::construct_at(element, std::forward<Args>(args)...);
  }
};

/// A vector whose resize() gives elements without a value: write them before they are read.
template <typename T>
using Column = std::vector<T, UninitializedAllocator<T>>;

}  // namespace fcap::ledger
