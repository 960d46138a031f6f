// The main() of every integration test. As GoogleTest's own, but a run in which a test was skipped
// and none failed ends with a code of its own, which ctest is told: a pattern in the output would
// hide the failures beside it.
#include <gtest/gtest.h>

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // as in tests/integration/CMakeLists.txt
  ::testing::InitGoogleTest(&argc, argv);
  const int code = RUN_ALL_TESTS();
  if (code != 0) return code;
  return ::testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? kSkipped : 0;
}
