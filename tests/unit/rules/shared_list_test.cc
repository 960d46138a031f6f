#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcap/rule_set.h>

#include "rules/rule_set_access.h"
#include "rules/shared_spec.h"
#include "tests/support/seed.h"

namespace fcap::rules {
namespace shared_list_test {

Campaign campaign(int number) {
  return {.id = "c" + std::to_string(number), .advertiser_id = "a" + std::to_string(number / 50)};
}

std::vector<Campaign> campaigns(int count) {
  std::vector<Campaign> all;
  for (int i = 0; i < count; ++i) all.push_back(campaign(i));
  return all;
}

SharedList<Campaign> list_of(const std::vector<Campaign>& items,
                             const SharedList<Campaign>& basis) {
  SharedListBuilder<Campaign> builder(basis);
  for (Campaign item : items) builder.add(std::move(item));
  return builder.finish();
}

std::vector<Campaign> items_of(const SharedList<Campaign>& list) {
  return {list.begin(), list.end()};
}

// How many items of `list` are the very objects that `basis` holds.
std::size_t shared_items(const SharedList<Campaign>& list, const SharedList<Campaign>& basis) {
  std::vector<const Campaign*> held(basis.data(), basis.data() + basis.size());
  std::sort(held.begin(), held.end());
  return static_cast<std::size_t>(std::count_if(
      list.data(), list.data() + list.size(),
      [&](const Campaign* item) { return std::binary_search(held.begin(), held.end(), item); }));
}

TEST(SharedList, HoldsItsItemsInOrder) {
  const std::vector<Campaign> items = campaigns(1000);
  const SharedList<Campaign> list = list_of(items, {});
  EXPECT_EQ(items_of(list), items);
  EXPECT_EQ(list[999].id, "c999");
  EXPECT_EQ(items_of(SharedListBuilder<Campaign>::of(items)), items);
  EXPECT_TRUE(list_of({}, list).empty());
  EXPECT_TRUE(SharedListBuilder<Campaign>::of({}).empty());
}

TEST(SharedList, ASecondOneOfTheSameItemsSharesAllOfThem) {
  const std::vector<Campaign> items = campaigns(1000);
  const SharedList<Campaign> first = list_of(items, {});
  const SharedList<Campaign> second = list_of(items, first);
  EXPECT_EQ(items_of(second), items);
  EXPECT_EQ(shared_items(second, first), items.size());
}

TEST(SharedList, AnItemThatChangesUnsharesItsBlockAlone) {
  std::vector<Campaign> items = campaigns(1000);
  const SharedList<Campaign> first = list_of(items, {});
  items[500].deleted = true;
  const SharedList<Campaign> second = list_of(items, first);
  EXPECT_EQ(items_of(second), items);
  EXPECT_GE(shared_items(second, first), items.size() - 64);
  EXPECT_LT(shared_items(second, first), items.size());
  EXPECT_FALSE(first[500].deleted);
}

TEST(SharedList, ItemsThatComeAndGoUnshareTheirBlocksAlone) {
  std::vector<Campaign> items = campaigns(1000);
  const SharedList<Campaign> first = list_of(items, {});
  items.erase(items.begin() + 100);
  items.insert(items.begin() + 700, campaign(5000));
  const SharedList<Campaign> second = list_of(items, first);
  EXPECT_EQ(items_of(second), items);
  EXPECT_GE(shared_items(second, first), items.size() - 3 * 64);
}

// Whatever happens to the items, a list is what was put in, and outlives the one it shares with.
TEST(SharedList, IsWhatWasPutInWhateverChanged) {
  std::mt19937_64 random(test_seed());
  const auto below = [&random](std::size_t bound) { return random() % bound; };
  std::vector<Campaign> items = campaigns(300);
  SharedList<Campaign> last = list_of(items, {});
  for (int round = 0; round < 200; ++round) {
    for (std::size_t changes = below(20); changes > 0; --changes) {
      const std::size_t at = below(items.size());
      switch (below(4)) {
        case 0:
          items[at].deleted = !items[at].deleted;
          break;
        case 1:
          items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
          break;
        case 2:
          items.push_back(campaign(1000 + static_cast<int>(below(10'000))));
          break;
        default:
          std::swap(items[at], items[below(items.size())]);
      }
    }
    last = list_of(items, last);
    ASSERT_EQ(items_of(last), items) << "round " << round;
  }
}

TEST(SharedList, ARuleSetOutlivesTheOneItSharesWith) {
  RuleSetSpec spec{.version = 1};
  for (int i = 0; i < 200; ++i) {
    spec.rules.push_back({.id = "r" + std::to_string(i),
                          .target = "c" + std::to_string(i),
                          .limit = 1,
                          .window = {.length = std::chrono::hours{1}}});
  }
  const auto build = [&spec](const RuleSet* basis) {
    SharedSpecSink sink(basis);
    for (Rule rule : spec.rules) sink.add(std::move(rule));
    return RuleSetAccess::build(sink.finish(spec.version), {}).value();
  };
  auto first = build(nullptr);
  ++spec.version;
  *spec.rules[7].limit = 9;
  const auto second = build(first.get());
  EXPECT_EQ(second->rules().data()[199], first->rules().data()[199]);
  EXPECT_NE(second->rules().data()[7], first->rules().data()[7]);
  first.reset();
  EXPECT_EQ(second->rules()[199].id, "r199");
  EXPECT_EQ(second->rules()[7].limit, 9U);
}

}  // namespace shared_list_test
}  // namespace fcap::rules
