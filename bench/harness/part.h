#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/load.h"
#include "harness/measured.h"
#include "harness/processes.h"
#include "harness/redis_console.h"

namespace fcap::bench {

/// What the parts are told; each ignores what does not concern it.
struct PartFlags {
  std::string json = "/dev/stdout";
  std::size_t users = 100'000;
  double seconds = 2;      ///< of each measurement
  std::size_t rounds = 5;  ///< of taking turns
  bool quick = false;      ///< fewer steps of each series: shows that it runs
  std::uint64_t events = 1'000'000;
  // Of the updater's part alone.
  std::vector<std::string> only;
  double propagation_seconds = 20;
  double live_step = 20'000;  ///< 0: the live rate is not looked for
};

/// What one part of the benches found out, as the JSON object that bench/run merges: numbers at the
/// top level, "tables" for people. bench/README.md describes it.
class PartResult {
 public:
  struct Column {
    const char* key;
    const char* title;
    int digits = 0;  ///< behind the point
  };

  /// One that is not finite is missing.
  void number(const std::string& key, double value);
  /// A number that could not be had, and why; the first reason counts.
  void missing(const std::string& key, const std::string& reason);

  /// `note` says what was measured. Rows follow by row().
  void table(const std::string& id, const std::string& title, const std::string& note,
             const std::vector<Column>& columns);
  /// `name` is stable, `title` is for people.
  void row(const std::string& table, const std::string& name, const std::string& title,
           const Numbers& numbers);

  /// Throws std::runtime_error.
  void write(const std::string& file) const;

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

/// Columns of several tables.
inline constexpr PartResult::Column kP50{"p50_us", "p50 µs", 1};
inline constexpr PartResult::Column kP99{"p99_us", "p99 µs", 1};
inline constexpr PartResult::Column kP999{"p999_us", "p99.9 µs", 1};
inline constexpr PartResult::Column kFailed{"failed", "failed", 0};
inline constexpr PartResult::Column kAnswered{"answered_per_second", "answered/s", 0};
/// Columns of what Load::measure() finds, and more.
std::vector<PartResult::Column> throughput_columns(std::vector<PartResult::Column> more = {});

/// One of those that are compared, and its row.
struct Turn {
  std::string table;
  std::string name;
  std::string title;
  std::function<Numbers()> measure;
};

/// A part over a Redis of its own.
class RedisPart {
 public:
  RedisPart(const PartFlags& flags, PartResult& result) : flags_(flags), result_(result) {}

 protected:
  /// Measures what is compared in turns, `rounds` times, and adds a row of medians for each. Throws
  /// if a request fails.
  void take_turns(const std::vector<Turn>& turns);
  /// Adds a number: a column of one that took turns, by that of another; missing if either did not.
  void ratio(const std::string& key, const std::string& name, const std::string& to,
             const std::string& column) {
    result_.number(key, measured_.ratio(name, to, column));
  }
  /// For a Turn, of a Load or what measures like one; without `redis_pid` over the part's own
  /// Redis.
  template <typename Requests>
  std::function<Numbers()> measuring(std::shared_ptr<Requests> requests,
                                     std::optional<int> redis_pid = {}) const {
    return [this, requests = std::move(requests), redis_pid] {
      return requests->measure(redis_pid.value_or(redis_.pid()), flags_.seconds);
    };
  }
  /// Quick runs take the first and one further step of a series.
  [[nodiscard]] std::vector<std::size_t> steps(std::vector<std::size_t> all) const {
    if (flags_.quick) all.resize(2);
    return all;
  }

  const PartFlags& flags_;
  PartResult& result_;
  Measured measured_;  ///< by the names of rows
  PartServer redis_{"redis", kRedisCore};
  RedisConsole console_{redis_.address()};
};

/// Parses the flags, lets `run` fill the result and writes it. What it throws becomes a message and
/// an exit code.
int run_part(int argc, char** argv, const std::function<void(const PartFlags&, PartResult&)>& run);

/// The same for Part(flags, result).run().
template <typename Part>
int run_part(int argc, char** argv) {
  return run_part(argc, argv,
                  [](const PartFlags& flags, PartResult& result) { Part(flags, result).run(); });
}

}  // namespace fcap::bench
