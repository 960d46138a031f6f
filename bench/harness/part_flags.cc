#include "harness/part_flags.h"

#include <cstdio>
#include <exception>

namespace fcap::bench {

int run_part(CLI::App& app, int argc, char** argv, PartFlags& flags,
             const std::function<int()>& part) {
  // bench/<part>/run puts its own choice before its caller's.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--redis", flags.redis, "An empty Redis, host:port")->capture_default_str();
  app.add_option("--json", flags.json, "Where the result goes")->capture_default_str();
  app.add_option("--users", flags.users, "Users in Redis")
      ->check(CLI::Range(1'000, 10'000'000))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "Of each measurement")
      ->check(CLI::Range(0.05, 600.0))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds, "Turns that each of those compared takes")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--quick", flags.quick, "Fewer steps of each series: shows that it runs");
  CLI11_PARSE(app, argc, argv);
  try {
    return part();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), error.what());
    return 1;
  }
}

}  // namespace fcap::bench
