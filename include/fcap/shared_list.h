#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <vector>

#include <fcap/cplusplus.h>

namespace fcap {

namespace rules {
template <typename Item>
class SharedListBuilder;
}

/// The rules or the campaigns of a RuleSet, in the order in which they were given:
///
///     for (const fcap::Rule& rule : set.rules()) print(rule.id);
///
/// It is read like a const std::vector. The items lie in small blocks, so that a rule set which
/// replaces another one shares the blocks that are equal with it instead of holding them twice.
///
/// Thread safety: immutable. References stay valid as long as the RuleSet lives.
template <typename Item>
class SharedList {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    using pointer = const Item*;
    using reference = const Item&;

    Iterator() = default;
    explicit Iterator(const Item* const* at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Item* const* at_ = nullptr;
  };
  using value_type = Item;
  using const_iterator = Iterator;

  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] const Item& operator[](std::size_t index) const { return *items_[index]; }
  [[nodiscard]] Iterator begin() const { return Iterator(items_.data()); }
  [[nodiscard]] Iterator end() const { return Iterator(items_.data() + items_.size()); }
  /// One pointer per item.
  [[nodiscard]] const Item* const* data() const noexcept { return items_.data(); }

 private:
  friend class rules::SharedListBuilder<Item>;
  using Block = std::vector<Item>;

  std::vector<const Item*> items_;
  std::vector<std::shared_ptr<const Block>> blocks_;
};

}  // namespace fcap
