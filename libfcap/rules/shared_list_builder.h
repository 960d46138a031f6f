#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fcap/shared_list.h>

#include "ledger/ids.h"

namespace fcap::rules {

/// Makes a SharedList of items that come one after the other. Blocks that are equal to one of the
/// list it is based on are shared with it. A block ends where its last item's id says so: an item
/// that was added or removed changes its own block, and the blocks behind it stay what they were.
template <typename Item>
class SharedListBuilder {
 public:
  /// The basis must live as long as the builder; it may be empty.
  explicit SharedListBuilder(const SharedList<Item>& basis) : basis_(basis) {}

  void reserve(std::size_t count) { list_.items_.reserve(count); }

  void add(Item&& item) {
    if (list_.blocks_.empty() && block_.empty()) begin();
    const bool is_last = (ledger::id_hash(item.id) & kLastOfBlockMask) == 0;
    block_.push_back(std::move(item));
    if (is_last || block_.size() == kBlockItemsMax) end_block();
  }

  SharedList<Item> finish() {
    end_block();
    return std::move(list_);
  }

  /// A list of items that are there already; it lies in one block.
  static SharedList<Item> of(std::vector<Item> items) {
    SharedList<Item> list;
    if (items.empty()) return list;
    list.blocks_.push_back(std::make_shared<const Block>(std::move(items)));
    append_items(*list.blocks_.back(), list);
    return list;
  }

 private:
  using Block = typename SharedList<Item>::Block;
  /// Sixteen items a block on average. Small ones share more when changes are scattered; each takes
  /// about a hundred bytes by itself.
  static constexpr std::uint64_t kLastOfBlockMask = 15;
  static constexpr std::size_t kBlockItemsMax = 64;

  static void append_items(const Block& block, SharedList<Item>& list) {
    for (const Item& item : block) list.items_.push_back(&item);
  }

  /// Not earlier, since many a look at a source finds that nothing has changed.
  void begin() {
    by_first_id_.reserve(basis_.blocks_.size());
    for (std::size_t i = 0; i < basis_.blocks_.size(); ++i) {
      by_first_id_.emplace(basis_.blocks_[i]->front().id, i);
    }
    block_.reserve(kBlockItemsMax);
  }

  void end_block() {
    if (block_.empty()) return;
    std::shared_ptr<const Block> block = equal_block();
    if (!block) {
      block = std::make_shared<const Block>(std::make_move_iterator(block_.begin()),
                                            std::make_move_iterator(block_.end()));
    }
    append_items(*block, list_);
    list_.blocks_.push_back(std::move(block));
    block_.clear();
  }

  /// Null: the basis has none.
  [[nodiscard]] std::shared_ptr<const Block> equal_block() const {
    const auto known = by_first_id_.find(block_.front().id);
    if (known == by_first_id_.end()) return nullptr;
    const std::shared_ptr<const Block>& block = basis_.blocks_[known->second];
    return *block == block_ ? block : nullptr;
  }

  const SharedList<Item>& basis_;
  std::unordered_map<std::string_view, std::size_t> by_first_id_;
  Block block_;
  SharedList<Item> list_;
};

}  // namespace fcap::rules
