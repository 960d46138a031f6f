#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <fcap/cplusplus.h>

namespace fcap {

template <typename Signature>
class UniqueFunction;

/// A std::function that can be moved but not copied, so that it may hold objects that cannot be
/// copied either. Objects of up to 48 bytes are stored in place, without an allocation. It is empty
/// when it was made from an empty std::function or a null function pointer.
template <typename Result, typename... Arguments>
class UniqueFunction<Result(Arguments...)> {
 public:
  UniqueFunction() noexcept = default;
  UniqueFunction(std::nullptr_t) noexcept {
  }  // NOLINT(google-explicit-constructor): as std::function

  template <typename Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, UniqueFunction> &&
           std::is_invocable_r_v<Result, std::decay_t<Function>&, Arguments...>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      UniqueFunction(Function&& function) {
    using Held = std::decay_t<Function>;
    if constexpr (requires { function == nullptr; }) {
      if (function == nullptr) return;
    }
    if constexpr (kFits<Held>) {
      ::new (static_cast<void*>(&place_)) Held(std::forward<Function>(function));
      operations_ = &kInPlace<Held>;
    } else {
      ::new (static_cast<void*>(&place_)) Held*(new Held(std::forward<Function>(function)));
      operations_ = &kOnTheHeap<Held>;
    }
  }

  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }
  UniqueFunction& operator=(std::nullptr_t) noexcept {
    reset();
    return *this;
  }
  UniqueFunction(const UniqueFunction&) = delete;
  UniqueFunction& operator=(const UniqueFunction&) = delete;
  ~UniqueFunction() { reset(); }

  [[nodiscard]] explicit operator bool() const noexcept { return operations_ != nullptr; }

  /// It must not be empty.
  Result operator()(Arguments... arguments) {
    return operations_->call(&place_, std::forward<Arguments>(arguments)...);
  }

 private:
  struct Place {
    alignas(std::max_align_t) std::byte bytes[48];
  };
  struct Operations {
    Result (*call)(void*, Arguments&&...);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };

  template <typename Held>
  static constexpr bool kFits =
      sizeof(Held) <= sizeof(Place) &&
      alignof(Held) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Held>;

  template <typename Held>
  static constexpr Operations kInPlace{
      .call = [](void* place, Arguments&&... arguments) -> Result {
        return static_cast<Result>(
            std::invoke(*static_cast<Held*>(place), std::forward<Arguments>(arguments)...));
      },
      .move =
          [](void* from, void* to) noexcept {
            auto* held = static_cast<Held*>(from);
            ::new (to) Held(std::move(*held));
            std::destroy_at(held);
          },
      .destroy = [](void* place) noexcept { std::destroy_at(static_cast<Held*>(place)); }};

  template <typename Held>
  static constexpr Operations kOnTheHeap{
      .call = [](void* place, Arguments&&... arguments) -> Result {
        return static_cast<Result>(
            std::invoke(**static_cast<Held**>(place), std::forward<Arguments>(arguments)...));
      },
      .move = [](void* from, void* to) noexcept { ::new (to) Held*(*static_cast<Held**>(from)); },
      .destroy = [](void* place) noexcept { delete *static_cast<Held**>(place); }};

  void take(UniqueFunction& other) noexcept {
    if (other.operations_ == nullptr) return;
    other.operations_->move(&other.place_, &place_);
    operations_ = std::exchange(other.operations_, nullptr);
  }
  void reset() noexcept {
    if (operations_ != nullptr) std::exchange(operations_, nullptr)->destroy(&place_);
  }

  Place place_;
  const Operations* operations_ = nullptr;
};

}  // namespace fcap
