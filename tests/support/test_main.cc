// The main() of every test program. As GoogleTest's own, and
// - --file=NAME runs only what NAME.cc defines: the tests of ctest are a program's files,
// - tests named SOAK_… take long, and run only where $FCAP_SOAK is set, without the others,
// - each test's outcome and time go into a file of their own below $FCAP_TEST_RESULTS,
// - a run in which a test was skipped and none failed ends with a code of its own, which ctest is
//   told: a pattern in the output would hide the failures beside it.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using ::testing::UnitTest;

// GoogleTest's filter for a file's tests, those for ./dev soak or the others; empty if it has none
// of them.
std::string tests_of(std::string_view file, bool soak) {
  const std::string ending = "/" + std::string(file) + ".cc";
  std::string filter;
  for (int s = 0; s < UnitTest::GetInstance()->total_test_suite_count(); ++s) {
    const ::testing::TestSuite& suite = *UnitTest::GetInstance()->GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(t);
      if (!std::string_view(test.file()).ends_with(ending)) continue;
      if (std::string_view(test.name()).starts_with("SOAK_") != soak) continue;
      if (!filter.empty()) filter += ':';
      filter += std::string(suite.name()) + '.' + test.name();
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // as in tests/CMakeLists.txt
  constexpr std::string_view kFile = "--file=";
  // NOLINTBEGIN(concurrency-mt-unsafe): nothing else runs yet
  const bool soak = std::getenv("FCAP_SOAK") != nullptr;
  if (const char* const results = std::getenv("FCAP_TEST_RESULTS");
      results != nullptr && argc > 1) {
    const std::string_view word = argv[1];
    const std::string name(word.starts_with(kFile) ? word.substr(kFile.size()) : "all");
    GTEST_FLAG_SET(output, "json:" + std::string(results) + "/" + name + "." +
                               std::to_string(::getpid()) + ".json");
  }
  // NOLINTEND(concurrency-mt-unsafe)
  ::testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view file = word.starts_with(kFile) ? word.substr(kFile.size()) : word;
    const std::string filter = tests_of(file, soak);
    if (filter.empty() && tests_of(file, !soak).empty()) {
      std::fprintf(stderr, "%s: unknown option, or no test is defined in this file\n", argv[i]);
      return 2;
    }
    if (filter.empty()) return 0;
    GTEST_FLAG_SET(filter, filter);
  }
  const int code = RUN_ALL_TESTS();
  if (code != 0) return code;
  return UnitTest::GetInstance()->skipped_test_count() > 0 ? kSkipped : 0;
}
