#include "harness/part.h"

#include <cstdio>

namespace fcap::bench {

using Json = nlohmann::ordered_json;

void PartResult::number(const std::string& key, double value) {
  if (!std::isfinite(value)) return missing(key, "measured nothing");
  json_[key] = value;
}

void PartResult::missing(const std::string& key, const std::string& reason) {
  json_[key] = nullptr;
  json_["missing"].emplace(key, reason);
}

void PartResult::table(const std::string& id, const std::string& title, const std::string& note,
                       const std::vector<Column>& columns) {
  Json& table = json_["tables"][id];
  table = {{"title", title}, {"note", note}};
  for (const Column& column : columns) {
    table["columns"].push_back(
        Json{{"key", column.key}, {"title", column.title}, {"digits", column.digits}});
  }
  table["rows"] = Json::array();
}

void PartResult::row(const std::string& table, const std::string& name, const std::string& title,
                     const Numbers& numbers) {
  Json row = {{"name", name}, {"title", title}};
  for (const auto& [key, value] : numbers) {
    row[key] = std::isfinite(value) ? Json(value) : Json(nullptr);
  }
  json_["tables"][table]["rows"].push_back(std::move(row));
}

void PartResult::write(const std::string& file) const {
  std::ofstream out(file);
  out << json_.dump(2) << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

std::vector<PartResult::Column> throughput_columns(std::vector<PartResult::Column> more) {
  more.insert(more.begin(), {{"requests_per_second", "requests/s", 0},
                             {"client_cpu_us", "client CPU µs/request", 2},
                             {"redis_cpu_us", "Redis CPU µs/request", 2}});
  return more;
}

void RedisPart::take_turns(const std::vector<Turn>& turns) {
  for (const Turn& turn : turns) measured_.forget(turn.name);  // another table's
  for (std::size_t round = 0; round < flags_.rounds; ++round) {
    for (const Turn& turn : turns) {
      const Numbers found = turn.measure();
      if (found.contains("failed") && found.at("failed") > 0) {
        throw std::runtime_error(turn.name + ": requests failed");
      }
      measured_.keep(turn.name, found);
    }
  }
  for (const Turn& turn : turns) {
    result_.row(turn.table, turn.name, turn.title, measured_.medians(turn.name));
  }
}

int run_part(int argc, char** argv, const std::function<void(const PartFlags&, PartResult&)>& run) {
  CLI::App app("One part of the benches; bench/README.md says what it measures.");
  // bench/run puts its own choice before its caller's.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.option_defaults()->always_capture_default();
  PartFlags flags;
  app.add_option("--json", flags.json, "Where the result goes");
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
  app.add_option("--propagation-seconds", flags.propagation_seconds,
                 "updater: at each of the three rates");
  app.add_option("--live-step", flags.live_step,
                 "updater: of the search for the live rate; 0: 20,000/s");
  CLI11_PARSE(app, argc, argv);
  try {
    PartResult result;
    run(flags, result);
    result.write(flags.json);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace fcap::bench
