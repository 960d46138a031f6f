#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include <fcap/store.h>
#include <fcap/time.h>

#include "support/redis_server.h"

namespace fcap::testing {

/// One impression, as a test makes it up.
struct MadeEvent {
  std::string user_id;
  std::string campaign_id;
  std::string event_id;
  Instant time;

  /// The message of the topic.
  [[nodiscard]] std::string json() const;
};

/// Makes events up, from a seed: distinct ids, users drawn from a population.
class EventMaker {
 public:
  EventMaker(std::uint64_t seed, std::size_t users) : random_(seed), users_(users) {}
  MadeEvent next();

 private:
  std::mt19937_64 random_;
  std::size_t users_;
  std::uint64_t made_ = 0;
};

/// What the ledgers must hold: each event once, whatever happened on the way.
class ExpectedLedgers {
 public:
  void add(const MadeEvent& event);
  [[nodiscard]] std::size_t events() const noexcept { return events_; }
  struct Count {
    long long users = 0;
    long long events = 0;
  };
  /// Only the users that are wanted count.
  [[nodiscard]] Count count(const std::function<bool(const std::string& user)>& wanted) const;

  struct Difference {
    std::size_t missing = 0;  ///< expected, and not in the store
    std::size_t surplus = 0;  ///< in the store, and not expected
    std::size_t unreadable = 0;
    [[nodiscard]] bool none() const noexcept { return missing + surplus + unreadable == 0; }
  };
  /// Compares with all expected users' records under the prefix.
  [[nodiscard]] Difference compare(Store& store, const std::string& prefix = "fcap") const;
  /// What is wrong with the expiries in a Redis that holds these events and nothing else: every key
  /// must have one, and a user's record must outlive its newest event by the retention. The first
  /// few, a line each; empty: nothing.
  [[nodiscard]] std::string wrong_expiries(const RedisServer& redis,
                                           std::chrono::milliseconds retention) const;

 private:
  using Identity = std::tuple<std::uint64_t, std::uint32_t, std::int64_t>;
  std::map<std::string, std::set<Identity>> users_;
  std::map<std::string, Instant> newest_;
  std::size_t events_ = 0;
};

}  // namespace fcap::testing
