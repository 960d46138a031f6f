#pragma once

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

}  // namespace fcap::bench
