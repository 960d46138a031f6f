#include "ledger/user_key.h"

#include <gtest/gtest.h>

namespace fcap::ledger {
namespace user_key_test {

TEST(UserKey, HoldsTheUserWholeWhateverItsBytesAre) {
  for (const std::string user : {"u1", "", "with:{braces}", "}"}) {
    std::string key = "what stood there before";
    user_key("fcap", user, key);
    EXPECT_EQ(key, "fcap:{" + user + "}");
    EXPECT_EQ(user_of_key("fcap", key), user);
  }
}

TEST(UserKey, OneBehindTheOtherInABuffer) {
  std::string keys;
  append_user_key("p", "a", keys);
  append_user_key("p", "b", keys);
  EXPECT_EQ(keys, "p:{a}p:{b}");
}

}  // namespace user_key_test
}  // namespace fcap::ledger
