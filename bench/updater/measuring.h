#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "updater/running_updater.h"

namespace fcap::bench {

/// Puts impressions of bursty sessions into a topic, so that producing is no part of what is
/// measured. Returns the mean size of a message.
double fill_topic(const Servers& servers, const std::string& topic, std::uint64_t events);

/// How far the events of a topic go without Redis: reading alone is the limit that librdkafka sets;
/// grouping ends with the bytes to append. The parts are the updater's.
enum class Stage : std::uint8_t { kRead, kDecode, kGroup };
Numbers measure_reading(const Servers& servers, std::uint64_t events, Stage stage);

/// The usual writer of the sorted-set layout, as a peer of fcap-updater: for each event ZADD to the
/// set of its user and campaign, ZREMRANGEBYSCORE of what has left the window, EXPIRE. Batches of
/// 500 events pipelined, so many of them in flight (1: it takes turns with Redis), commits
/// asynchronous. It shares fcap's consumer, decoder and Redis client, so what differs is the layout
/// and what is written.
Numbers measure_zset_writer(const Servers& servers, std::uint64_t events, std::size_t in_flight);

/// What fcap-updater sends to Redis while it drains the topic, byte for byte. Without the last
/// compaction, which is not under way while events arrive: the updater is killed.
std::string record_commands(const Servers& servers, const std::string& topic, std::uint64_t events);

/// What Redis alone takes: sends recorded commands as fast as it reads them, from memory, until it
/// has executed all of them.
Numbers measure_commands(const Servers& servers, const std::string& commands, std::uint64_t events);

struct PropagationOptions {
  std::string topic;
  double rate = 0;  ///< events per second
  double seconds = 0;
  /// Before that: the broker compiles itself.
  double warm_up_seconds = 0;
  std::size_t users = 0;
};

/// How long an event takes from the producer to a reader: impressions are produced at a fixed rate;
/// some are of users of their own, and these users' records are asked for until they are there.
/// Times run from when a message was due, not from when it could be sent (no coordinated omission).
Numbers measure_propagation(const Servers& servers, const PropagationOptions& options);

}  // namespace fcap::bench
