#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>

namespace fcap::redis {

/// Keeps a bounded number of objects for reuse. Any thread may give and take them without a lock:
/// it is a bounded ring whose cells have a turn number, so that no two threads ever use one cell at
/// once.
///
/// We do this rather than share checker::Pool, whose objects outlive it, are visited while idle and
/// have a home stripe. Nothing of that is needed here, where every request takes one of these and
/// an I/O thread gives it back: a compare-and-swap each, where a mutex is locked and unlocked. The
/// turn numbers also rule out what plagues lock-free lists, a pointer that comes back unnoticed.
template <typename T>
class FreeList {
 public:
  explicit FreeList(std::size_t objects_max)
      : size_(std::bit_ceil(std::max<std::size_t>(objects_max, 1))),
        cells_(std::make_unique<Cell[]>(size_)) {
    for (std::size_t i = 0; i < size_; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }
  ~FreeList() {
    while (T* item = take()) delete item;
  }
  FreeList(const FreeList&) = delete;
  FreeList& operator=(const FreeList&) = delete;

  /// An object given before, or null.
  [[nodiscard]] T* take() noexcept {
    std::size_t position = take_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position & (size_ - 1)];
      const std::size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position + 1) {
        if (take_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          T* item = cell.item;
          cell.turn.store(position + size_, std::memory_order_release);
          return item;
        }
      } else if (turn == position) {
        return nullptr;
      } else {
        position = take_.load(std::memory_order_relaxed);
      }
    }
  }

  /// Keeps `item`, or deletes it if the list is full.
  void give(T* item) noexcept {
    std::size_t position = give_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position & (size_ - 1)];
      const std::size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position) {
        if (give_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          cell.item = item;
          // Release, with take()'s acquire: whoever sees the turn sees the item, and what its last
          // user wrote to it.
          cell.turn.store(position + 1, std::memory_order_release);
          return;
        }
      } else if (turn == position + 1 - size_) {
        delete item;  // NOLINT(clang-analyzer-cplusplus.NewDelete): an item is given once
        return;
      } else {
        position = give_.load(std::memory_order_relaxed);
      }
    }
  }

 private:
  struct Cell {
    std::atomic<std::size_t> turn;
    T* item = nullptr;
  };

  alignas(64) std::atomic<std::size_t> take_{0};
  alignas(64) std::atomic<std::size_t> give_{0};
  alignas(64) const std::size_t size_;
  const std::unique_ptr<Cell[]> cells_;
};

}  // namespace fcap::redis
