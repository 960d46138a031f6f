#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "checker/stripes.h"

namespace fcap::checker {

template <typename T>
class Pool;

/// What an object needs to live in a Pool.
template <typename T>
class PoolNode {
 private:
  friend class Pool<T>;
  T* next_free_ = nullptr;
  Pool<T>* pool_ = nullptr;
  std::size_t home_ = 0;
};

/// Objects that are used again, with the memory they have grown. At most kFreeMax per stripe are
/// kept.
///
/// Each stripe is a list under a mutex rather than a lock-free one. Threads meet in a stripe only
/// when the kernel moves one in the middle of these few lines, so the mutex is as good as never
/// contended and costs what the compare-and-swap of a lock-free list would, without the tags that
/// such a list needs against a pointer that comes back (ABA), and close() can count exactly.
/// An object goes back to the stripe it came from: otherwise a thread that submits and another that
/// completes would drain one stripe and fill the other.
///
/// Thread safety: acquire() and release() from any thread; close() once, when nothing acquires any
/// more. Objects may be released after close(): the last one takes the pool with it, because a
/// store may complete an operation after its Checker is gone.
template <typename T>
class Pool {
 public:
  struct Closer {
    void operator()(Pool* pool) const noexcept { pool->close(); }
  };
  using Owner = std::unique_ptr<Pool, Closer>;

  [[nodiscard]] static Owner make() { return Owner(new Pool); }

  /// Throws std::bad_alloc.
  [[nodiscard]] T* acquire() {
    const std::size_t index = current_stripe();
    PoolStripe& stripe = stripes_[index];
    {
      const std::lock_guard lock(stripe.mutex);
      if (T* object = stripe.free; object != nullptr) {
        stripe.free = object->PoolNode<T>::next_free_;
        --stripe.free_count;
        ++stripe.in_use_count;
        return object;
      }
    }
    auto object = std::make_unique<T>();
    object->PoolNode<T>::pool_ = this;
    object->PoolNode<T>::home_ = index;
    const std::lock_guard lock(stripe.mutex);
    ++stripe.in_use_count;
    return object.release();
  }

  /// Gives an object back to the pool it came from.
  static void release(T* object) noexcept { object->PoolNode<T>::pool_->take_back(object); }

  /// Calls visit(T&) for each object that nobody uses.
  template <typename Visit>
  void for_each_free(Visit visit) noexcept {
    for (PoolStripe& stripe : stripes_) {
      const std::lock_guard lock(stripe.mutex);
      for (T* object = stripe.free; object != nullptr; object = object->PoolNode<T>::next_free_) {
        visit(*object);
      }
    }
  }

 private:
  static constexpr std::size_t kFreeMax = 256;

  struct alignas(kCacheLineBytes) PoolStripe {
    std::mutex mutex;
    T* free = nullptr;
    std::size_t free_count = 0;
    std::size_t in_use_count = 0;
    bool closed = false;
  };

  Pool() = default;
  ~Pool() = default;

  void take_back(T* object) noexcept {
    PoolStripe& stripe = stripes_[object->PoolNode<T>::home_];
    bool keep = false;
    bool last = false;
    {
      const std::lock_guard lock(stripe.mutex);
      --stripe.in_use_count;
      keep = !stripe.closed && stripe.free_count < kFreeMax;
      last = stripe.closed && stripe.in_use_count == 0;
      if (keep) {
        object->PoolNode<T>::next_free_ = stripe.free;
        stripe.free = object;
        ++stripe.free_count;
      }
    }
    if (!keep) delete object;
    if (last) drop_holds(1);
  }

  void close() noexcept {
    std::size_t released = 1;
    for (PoolStripe& stripe : stripes_) {
      T* free = nullptr;
      {
        const std::lock_guard lock(stripe.mutex);
        stripe.closed = true;
        free = std::exchange(stripe.free, nullptr);
        if (stripe.in_use_count == 0) ++released;
      }
      while (free != nullptr) delete std::exchange(free, free->PoolNode<T>::next_free_);
    }
    drop_holds(released);
  }

  void drop_holds(std::size_t count) noexcept {
    if (holds_.fetch_sub(count, std::memory_order_acq_rel) == count) delete this;
  }

  std::array<PoolStripe, kStripeCount> stripes_{};
  // One for each stripe that has objects in use or is open, and one for close() itself.
  std::atomic<std::size_t> holds_{kStripeCount + 1};
};

}  // namespace fcap::checker
