#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace fcap::redis {

/// A FIFO in one block that grows by doubling and keeps its memory: no allocation once warm.
template <typename T>
class RingQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// The i-th from the front.
  [[nodiscard]] T& operator[](std::size_t i) noexcept {
    return items_[(first_ + i) & (items_.size() - 1)];
  }
  [[nodiscard]] T& front() noexcept { return items_[first_]; }

  void push_back(const T& item) {
    if (size_ == items_.size()) grow();
    items_[(first_ + size_) & (items_.size() - 1)] = item;
    ++size_;
  }

  void pop_front() noexcept {
    first_ = (first_ + 1) & (items_.size() - 1);
    --size_;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? kSizeMin : items_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    items_ = std::move(larger);
    first_ = 0;
  }

  static constexpr std::size_t kSizeMin = 64;

  std::vector<T> items_;  // the size is 0 or a power of two
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace fcap::redis
