#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/commands.h"

namespace fcap::cli_test {

/// What a command printed and gave.
struct Ran {
  int code = -1;
  std::string out;
  std::string err;

  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> result;
    std::istringstream stream(out);
    for (std::string line; std::getline(stream, line);) result.push_back(line);
    return result;
  }
};

/// Runs `fcap` with these arguments, within this process.
inline Ran run(const std::vector<std::string>& arguments, const std::string& input = {}) {
  std::vector<const char*> argv{"fcap"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  Ran ran;
  ran.code =
      cli::run(static_cast<int>(argv.size()), argv.data(), {.in = in, .out = out, .err = err});
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

/// A file that is gone after the test.
class File {
 public:
  explicit File(const std::string& content)
      : path_(std::filesystem::temp_directory_path() /
              ("fcap_cli_test_" + std::to_string(::getpid()) + "_" + std::to_string(next++))) {
    std::ofstream(path_) << content;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[nodiscard]] std::string path() const { return path_; }

 private:
  inline static int next = 0;
  std::filesystem::path path_;
};

}  // namespace fcap::cli_test
