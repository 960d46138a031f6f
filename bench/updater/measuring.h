#pragma once

#include "harness/measure.h"
#include "support/kafka_broker.h"
#include "support/redis_server.h"

namespace fcap::bench {

/// Topics of four partitions.
inline constexpr const char* kFilledTopic = "impressions";
inline constexpr const char* kLiveTopic = "live";
inline constexpr const char* kSlowTopic = "slow";

struct Servers {
  explicit Servers(const testing::RedisServer& part_redis);
  /// The CPU time of a process and of both servers.
  [[nodiscard]] Meter meter(int client_pid) const;

  const testing::RedisServer& redis;
  const std::unique_ptr<testing::KafkaBroker> kafka = start_on<testing::KafkaBroker>(kAnyCore);
};

/// A command line of fcap-updater, such as for "replay", with a group of its own, so that it starts
/// at the topic's beginning. `gap_messages_min`: how many lost messages of a partition are read
/// again beside the live ones; 0: none are.
std::vector<std::string> updater_command(const Servers& servers, const std::string& command,
                                         const std::string& topic, const std::string& redis,
                                         std::uint64_t gap_messages_min = 0);

/// The real fcap-updater, running on the client's core. Throws when it does not start.
class RunningUpdater {
 public:
  RunningUpdater(const Servers& servers, const std::string& topic, const std::string& redis,
                 std::uint64_t gap_messages_min = 0);

  /// Watches it until Redis has acknowledged so many events, by its metrics page and by /proc: from
  /// the first acknowledged event seen to the last.
  [[nodiscard]] Numbers drain(std::uint64_t events) const;
  /// Waits until a metric is at least that.
  void wait_for(const std::string& metric, double at_least) const;
  /// Reads this metric from its page; 0 if it is not there.
  [[nodiscard]] double metric(const std::string& name) const;
  void end(int signal);

 private:
  const Servers& servers_;
  testing::Process process_;
  int port_ = 0;  // of its metrics
};

// The rows: ../README.md.

/// What fcap-updater sends to Redis while it drains the topic, byte for byte. Without the last
/// compaction, which is not under way while events arrive: the updater is killed.
std::string record_commands(const Servers& servers, const std::string& topic, std::uint64_t events);

/// Sends recorded commands as fast as Redis reads them, until it has executed all of them.
Numbers measure_commands(const Servers& servers, const std::string& commands, std::uint64_t events);

/// Puts impressions of bursty sessions into a topic. Returns the mean size of a message.
double fill_topic(const Servers& servers, const std::string& topic, std::uint64_t events);

/// Tells Redis of all these impressions as ad servers do that share their notes: a reservation
/// each.
void write_shared_notes(const Servers& servers, std::uint64_t events);

/// Reading alone is the limit that librdkafka sets; grouping ends with the bytes to append. The
/// parts are the updater's.
enum class UpdaterStage : std::uint8_t { kRead, kDecode, kGroup };
Numbers measure_reading(const Servers& servers, std::uint64_t events, UpdaterStage stage);

/// The usual writer of the sorted-set layout. It shares fcap's consumer, decoder and Redis client,
/// so what differs is the layout and what is written. With one batch in flight it takes turns with
/// Redis.
Numbers measure_zset_writer(const Servers& servers, std::uint64_t events, std::size_t in_flight);

struct PropagationOptions {
  std::string topic;
  double rate = 0;  ///< events per second
  double seconds = 0;
  /// How long events flow before they are measured: meanwhile the broker compiles its own code.
  double warm_up_seconds = 0;
  std::size_t users = 0;
};

/// How long an event takes from the producer to a reader, from when the message was due, not from
/// when it could be sent (no coordinated omission).
Numbers measure_propagation(const Servers& servers, const PropagationOptions& options);

}  // namespace fcap::bench
