#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/measure.h"
#include "harness/redis_console.h"
#include "support/redis_server.h"

namespace fcap::bench {

/// What the parts are told; each ignores what does not concern it.
struct PartFlags {
  std::size_t users = 100'000;
  double seconds = 2;      ///< of each measurement
  std::size_t rounds = 5;  ///< of taking turns
  bool quick = false;      ///< fewer steps of each series: shows that it runs
  std::uint64_t events = 1'000'000;
  std::vector<std::string> only;  ///< of the updater's part
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

  /// Begins a table. `note` says what was measured.
  void table(const std::string& id, const std::string& title, const std::string& note,
             const std::vector<Column>& columns);
  /// Adds a row to the table that was begun last. `name` is stable, `title` is for people.
  void row(const std::string& name, const std::string& title, const Numbers& numbers) {
    row(table_, name, title, numbers);
  }
  void row(const std::string& table, const std::string& name, const std::string& title,
           const Numbers& numbers);
  /// The id of the table that was begun last.
  [[nodiscard]] const std::string& table() const noexcept { return table_; }

  /// Throws std::runtime_error.
  void write(const std::string& file) const;

 private:
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
  std::string table_;
};

/// Columns of several tables.
inline constexpr PartResult::Column kP50{"p50_us", "p50 µs", 1};
inline constexpr PartResult::Column kP99{"p99_us", "p99 µs", 1};
inline constexpr PartResult::Column kP999{"p999_us", "p99.9 µs", 1};
inline constexpr PartResult::Column kFailed{"failed", "failed", 0};
inline constexpr PartResult::Column kAnswered{"answered_per_second", "answered/s", 0};
/// Columns of what Load::measure() finds, and more.
std::vector<PartResult::Column> throughput_columns(std::vector<PartResult::Column> more = {});

/// A part over a Redis of its own.
class RedisPart {
 public:
  RedisPart(const PartFlags& flags, PartResult& result) : flags_(flags), result_(result) {}

 protected:
  /// Adds one to those that are compared. It becomes a row of the table that was begun last.
  void compare(const std::string& name, const std::string& title,
               std::function<Numbers()> measure) {
    turns_.push_back({result_.table(), name, title, std::move(measure)});
  }
  /// The same for a Load, or what measures like one, made from these.
  template <typename Requests, typename... From>
  void compare(const std::string& name, const std::string& title, From&&... from) {
    auto requests = std::make_shared<Requests>(std::forward<From>(from)...);
    compare(name, title, [this, requests = std::move(requests)] {
      return requests->measure(redis_->pid(), flags_.seconds);
    });
  }
  /// Measures what is compared in turns (A, B, C, A, B, C, …), `rounds` times, so that whatever
  /// disturbs the machine for a while disturbs all of them alike. Their rows are the medians.
  /// Throws if a request fails.
  void take_turns();
  /// Adds a number: the median, over the rounds, of the column of `name` divided by that of `to`.
  /// It is missing if either did not take turns.
  void ratio(const std::string& key, const std::string& name, const std::string& to,
             const std::string& column);
  /// The median over the rounds that have the column; NaN if none has.
  [[nodiscard]] double median(const std::string& name, const std::string& column) const;
  /// Quick runs take the first and one further step of a series.
  [[nodiscard]] std::vector<std::size_t> steps(std::vector<std::size_t> all) const {
    if (flags_.quick) all.resize(2);
    return all;
  }

  /// One of those that are compared, and its row.
  struct ComparedTurn {
    std::string table;
    std::string name;
    std::string title;
    std::function<Numbers()> measure;
  };

  const PartFlags& flags_;
  PartResult& result_;
  std::vector<ComparedTurn> turns_;
  std::map<std::string, std::vector<Numbers>> rounds_;  ///< what each found, by the names of rows
  std::unique_ptr<testing::RedisServer> redis_ = start_on<testing::RedisServer>(kRedisCore);
  RedisConsole console_{redis_->address()};

 private:
  [[nodiscard]] std::vector<double> found(const std::string& name, const std::string& column) const;
};

/// A part of the program; one such constant stands in its folder:
///     const Registered kCheck("check", run_part<CheckPart>);
struct Registered {
  using Run = void (*)(const PartFlags& flags, PartResult& result);
  Registered(const char* name, Run run) { all().emplace(name, run); }

  static std::map<std::string, Run>& all() {
    static std::map<std::string, Run> parts;
    return parts;
  }
};
template <typename Part>
void run_part(const PartFlags& flags, PartResult& result) {
  Part(flags, result).run();
}

}  // namespace fcap::bench
