#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "updater/processes.h"

namespace fcap::bench {

/// What was measured, by the names of the table's columns.
using Numbers = std::map<std::string, double>;

/// The servers of a run, and where the programs lie.
struct Servers {
  std::string brokers;
  int broker_pid = 0;
  std::string redis;  ///< host:port
  int redis_pid = 0;
  std::string updater = "updater/fcap-updater";  ///< the program
  std::filesystem::path directory;               ///< for files of the run
};

/// Where the work of Redis, and of what is measured, goes. The broker is with what is measured.
inline constexpr int kRedisCore = 0;
inline constexpr int kClientCore = 1;

/// Writes a configuration of fcap-updater for a group of its own, so that it starts at the topic's
/// beginning. `gap_messages_min`: how many lost messages of a partition are read again beside the
/// live ones; 0: none are.
std::filesystem::path write_config(const Servers& servers, const std::string& topic,
                                   const std::string& redis, std::uint64_t gap_messages_min = 0);

/// The real fcap-updater, running on the client's core. Throws when it does not start.
class RunningUpdater {
 public:
  RunningUpdater(const Servers& servers, const std::string& topic, const std::string& redis,
                 std::uint64_t gap_messages_min = 0);

  void wait_until_ready() const;
  /// Watches it until Redis has acknowledged so many events, by its metrics page and by /proc: from
  /// the first acknowledged event seen to the last.
  [[nodiscard]] Numbers drain(std::uint64_t events) const;
  /// How many offsets are in gaps.
  [[nodiscard]] std::uint64_t gap_offsets() const;
  /// How many messages of gaps have been read.
  [[nodiscard]] std::uint64_t gap_messages() const;
  /// Until it has noticed a loss that is large enough.
  void wait_for_gap() const;
  void end(int signal) { (void)process_.end(signal); }

 private:
  /// The answer of its HTTP server.
  [[nodiscard]] std::string get(const std::string& path) const;

  const Servers& servers_;
  ChildProcess process_;
  int port_ = 0;
};

}  // namespace fcap::bench
