#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "harness/processes.h"

namespace fcap::bench {

/// Topics of four partitions.
inline constexpr const char* kFilledTopic = "impressions";
inline constexpr const char* kLiveTopic = "live";
inline constexpr const char* kSlowTopic = "slow";

struct Servers {
  explicit Servers(const PartServer& part_redis);
  /// The CPU time of a process and of both servers.
  [[nodiscard]] Meter meter(int client_pid) const;

  const PartServer& redis;
  PartServer kafka{"kafka", "brokers", kAnyCore};
  testing::TemporaryDirectory directory;  ///< for files of the run
};

/// Writes a configuration of fcap-updater for a group of its own, so that it starts at the topic's
/// beginning. `gap_messages_min`: how many lost messages of a partition are read again beside the
/// live ones; 0: none are.
std::string write_config(const Servers& servers, const std::string& topic, const std::string& redis,
                         std::uint64_t gap_messages_min = 0);

/// The real fcap-updater, running on the client's core. Throws when it does not start.
class RunningUpdater {
 public:
  RunningUpdater(const Servers& servers, const std::string& topic, const std::string& redis,
                 std::uint64_t gap_messages_min = 0);

  /// Watches it until Redis has acknowledged so many events, by its metrics page and by /proc: from
  /// the first acknowledged event seen to the last.
  [[nodiscard]] Numbers drain(std::uint64_t events) const;
  /// Of its metrics page; 0 if it is not there.
  [[nodiscard]] double metric(const std::string& name) const;
  void end(int signal);

 private:
  const Servers& servers_;
  testing::Process process_;
  std::string port_;  // of its metrics
};

}  // namespace fcap::bench
