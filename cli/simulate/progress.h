#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>

namespace fcap::cli {

/// One line on standard error that says how far a long task is: percentage and time left. Silent
/// for the first second.
class Progress {
 public:
  Progress(std::ostream& err, bool shown) : err_(err), shown_(shown) {}
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Begins a stage; "Reading log.csv".
  void begin(std::string stage);
  /// `done` of `total`, in whatever unit. Cheap enough for every few thousand events.
  void report(std::uint64_t done, std::uint64_t total);
  /// Wipes the line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::ostream& err_;
  bool shown_;
  std::string stage_;
  Clock::time_point begun_;
  Clock::time_point last_;
  bool line_is_open_ = false;
};

}  // namespace fcap::cli
