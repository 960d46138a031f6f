#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace fcap::bench {

/// What every part is told.
struct PartFlags {
  std::string redis = "127.0.0.1:6379";
  std::string json = "/dev/stdout";
  std::size_t users = 100'000;
  double seconds = 2;      ///< of each measurement
  std::size_t rounds = 5;  ///< of taking turns
  bool quick = false;      ///< fewer steps of each series: shows that it runs
};

/// Adds the flags, parses, runs `part`, and turns what it throws into a message and an exit code.
int run_part(CLI::App& app, int argc, char** argv, PartFlags& flags,
             const std::function<int()>& part);

}  // namespace fcap::bench
