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
  json_["missing"][key] = reason;
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

std::vector<PartResult::Column> throughput_columns() {
  return {{"requests_per_second", "requests/s", 0},
          {"client_cpu_us", "client CPU µs/request", 2},
          {"redis_cpu_us", "Redis CPU µs/request", 2}};
}

Measured RedisPart::take_turns(const std::vector<Turn>& turns) {
  Measured measured;
  for (std::size_t round = 0; round < flags_.rounds; ++round) {
    for (const Turn& turn : turns) {
      const Numbers found = turn.measure();
      if (found.contains("failed") && found.at("failed") > 0) {
        throw std::runtime_error(turn.name + ": requests failed");
      }
      measured.keep(turn.name, found);
    }
  }
  for (const Turn& turn : turns) {
    result_.row(turn.table, turn.name, turn.title, measured.medians(turn.name));
  }
  return measured;
}

void PartFlags::add_to(CLI::App& app) {
  app.add_option("--json", json, "Where the result goes");
  app.add_option("--users", users, "Users in Redis")->check(CLI::Range(500, 10'000'000));
  app.add_option("--seconds", seconds, "Of each measurement")->check(CLI::Range(0.05, 600.0));
  app.add_option("--rounds", rounds, "Turns that each of those compared takes")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--quick", quick, "Fewer steps of each series: shows that it runs");
}

int run_part(int argc, char** argv, const std::string& what, PartFlags& flags,
             const std::function<void(PartResult&)>& run) {
  CLI::App app(what);
  // bench/run puts its own choice before its caller's.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.option_defaults()->always_capture_default();
  flags.add_to(app);
  CLI11_PARSE(app, argc, argv);
  try {
    PartResult result;
    run(result);
    result.write(flags.json);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace fcap::bench
