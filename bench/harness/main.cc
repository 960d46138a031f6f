// bench_part: runs one part of the benches and writes what it found out.
#include <CLI/CLI.hpp>

#include "harness/part.h"

int main(int argc, char** argv) try {
  using namespace fcap::bench;
  CLI::App app("One part of the benches; bench/README.md says what it measures.");
  // bench/run puts its own choice before its caller's.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.option_defaults()->always_capture_default();
  std::string part;
  std::string file = "/dev/stdout";
  PartFlags flags;
  app.add_option("part", part)->required()->check(CLI::IsMember(Registered::all()));
  app.add_option("--json", file, "Where the result goes");
  app.add_option("--users", flags.users, "Users in Redis")->check(CLI::Range(500, 10'000'000));
  app.add_option("--seconds", flags.seconds, "Of each measurement")->check(CLI::Range(0.05, 600.0));
  app.add_option("--rounds", flags.rounds, "Turns that each of those compared takes")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--quick", flags.quick, "Fewer steps of each series: shows that it runs");
  app.add_option("--events", flags.events, "updater, capacity: how many a topic is filled with")
      ->check(CLI::Range(1'000, 1'000'000'000));
  app.add_option("--only", flags.only,
                 "updater: updater, zset, redis_limit, read, replay, slow, propagation, gap")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  PartResult result;
  Registered::all().at(part)(flags, result);
  result.write(file);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_part: {}\n", error.what());
  return 1;
}
