// The events, what a topic is filled with, and live ones.
#include <iterator>
#include <mutex>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"
#include "harness/redis_console.h"
#include "ledger/user_key.h"
#include "path/population.h"
#include "redis/command.h"
#include "support/kafka_broker.h"
#include "updater/measuring.h"

namespace fcap::bench {
namespace {

using std::chrono::steady_clock;

// Of the traffic that is modelled, not how fast it is produced.
constexpr double kEventsPerSecond = 20'000;
constexpr std::uint64_t kCampaigns = 1'000;
constexpr int kPagesMax = 8;
constexpr int kImpressionsMax = 4;  // of a page
constexpr double kPagesMean = (1 + kPagesMax) / 2.0;
constexpr double kImpressionsMean = (1 + kImpressionsMax) / 2.0;
constexpr double kBeaconDeviation = 1.462;  // of the logarithm of seconds: 99 % are below 30 s
constexpr double kBeaconMaxMs = 60'000;
constexpr std::int64_t kPageMinMs = 5'000;
constexpr std::int64_t kPageMaxMs = 30'000;
constexpr double kSessionMaxMs = (kPagesMax + 2) * kPageMaxMs;

constexpr std::chrono::milliseconds kPatience{5000};
constexpr std::chrono::microseconds kBetweenRequests{500};
constexpr std::chrono::microseconds kOversleep{500};
constexpr double kProbesPerSecond = 200;
// Produced over and over: their order matters, and that ids of impressions differ.
constexpr std::size_t kArrivals = 200'000;

// One impression. Ids are made from the numbers.
struct Arrival {
  std::int64_t arrived_ms = 0;
  std::int64_t shown_ms = 0;
  std::uint64_t user = 0;
  std::uint64_t campaign = 0;
};

// Impressions of bursty sessions (README.md) in the order of their arrival, an hour ago, the same
// for the same numbers. It starts in the middle of things: with sessions of all ages under way. One
// impression is much like another; what matters to a writer is how near each other a user's events
// lie.
std::vector<Arrival> make_arrivals(std::size_t count, std::size_t users) {
  std::mt19937_64 random;
  std::uniform_int_distribution<std::uint64_t> user(0, users - 1);
  std::uniform_int_distribution<std::uint64_t> campaign(0, kCampaigns - 1);
  std::uniform_int_distribution<int> pages(1, kPagesMax);
  std::uniform_int_distribution<int> impressions(1, kImpressionsMax);
  std::uniform_int_distribution<std::int64_t> next_page_ms(kPageMinMs, kPageMaxMs);
  std::lognormal_distribution<double> beacon_seconds(0, kBeaconDeviation);
  std::exponential_distribution<double> next_session_ms(kEventsPerSecond / 1000 / kPagesMean /
                                                        kImpressionsMean);
  const std::int64_t start_ms = to_ms(base::wall_now() - std::chrono::hours(1));
  std::vector<Arrival> arrivals;
  double session_ms = static_cast<double>(start_ms) - kSessionMaxMs;
  // What arrives later than the newest session begins may lack some of its neighbours.
  for (std::size_t arrived = 0; arrived < count; session_ms += next_session_ms(random)) {
    const std::uint64_t who = user(random);
    auto page_ms = static_cast<std::int64_t>(session_ms);
    for (int page = pages(random); page > 0; --page) {
      for (int left = impressions(random); left > 0; --left) {
        const double beacon_ms = std::min(1000 * beacon_seconds(random), kBeaconMaxMs);
        const std::int64_t arrived_ms = page_ms + static_cast<std::int64_t>(beacon_ms);
        if (arrived_ms >= start_ms) {
          arrivals.push_back({arrived_ms, page_ms, who, campaign(random)});
        }
      }
      page_ms += next_page_ms(random);
    }
    arrived = static_cast<std::size_t>(std::max(0.0, session_ms - static_cast<double>(start_ms)) /
                                       1000 * kEventsPerSecond);
  }
  std::ranges::sort(arrivals, {}, &Arrival::arrived_ms);
  arrivals.resize(count);
  return arrivals;
}

std::string message_of(const Arrival& arrival, std::string_view user_id, std::uint64_t number) {
  return fmt::format(
      R"({{"user_id":"{}","campaign_id":"campaign-{}","timestamp":{},"imp_id":"{}"}})", user_id,
      arrival.campaign, arrival.shown_ms, uuid(kImpressionIds, number));
}

struct Probe {
  std::string key;
  steady_clock::time_point due;
};

// Asks for probes on a thread of its own.
class Watcher {
 public:
  explicit Watcher(const PartServer& redis)
      : console_(redis.address()), thread_([this](const std::stop_token& stop) { watch(stop); }) {}
  void add(const std::string& user, steady_clock::time_point due) {
    Probe probe{.key = {}, .due = due};
    ledger::user_key("fcap", user, probe.key);
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(probe));
  }
  // Waits for what is still to come.
  Numbers finish() {
    thread_.request_stop();
    thread_.join();
    return {{"p50_ms", delays_.percentile_us(0.5) / 1000},
            {"p99_ms", delays_.percentile_us(0.99) / 1000},
            {"max_ms", delays_.percentile_us(1) / 1000},
            {"unseen", unseen_}};
  }

 private:
  void watch(const std::stop_token& stop) {
    std::vector<Probe> open;
    for (;;) {
      const bool last = stop.stop_requested();
      {
        const std::lock_guard lock(mutex_);
        std::move(added_.begin(), added_.end(), std::back_inserter(open));
        added_.clear();
      }
      if (last && open.empty()) return;
      if (!open.empty()) look_for(open);
      std::this_thread::sleep_for(kBetweenRequests);
    }
  }

  // MGET of all that is being waited for; leaves what is still missing.
  void look_for(std::vector<Probe>& open) {
    std::string wire;
    redis::append_word_count(wire, 1 + open.size());
    redis::append_word(wire, "MGET");
    for (const Probe& probe : open) redis::append_word(wire, probe.key);
    std::vector<bool> present;
    console_.run(std::move(wire), 1, [&](std::uint32_t, const redis::Reply& reply) {
      for (const redis::Reply& record : reply.elements) {
        present.push_back(record.kind == redis::Reply::Kind::kString);
      }
    });
    const auto now = steady_clock::now();
    std::vector<Probe> missing;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (present[i]) {
        delays_.record(now - open[i].due);
      } else if (now - open[i].due > kPatience) {
        ++unseen_;
      } else {
        missing.push_back(std::move(open[i]));
      }
    }
    open = std::move(missing);
  }

  RedisConsole console_;
  std::mutex mutex_;
  std::vector<Probe> added_;  // guarded by mutex_
  Durations delays_;
  double unseen_ = 0;
  std::jthread thread_;
};

steady_clock::duration of_seconds(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

double fill_topic(const Servers& servers, const std::string& topic, std::uint64_t events) {
  const std::vector<Arrival> arrivals = make_arrivals(events, events / 10);
  testing::KafkaProducer producer(servers.kafka.address());
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < events; ++i) {
    const std::string user = uuid(kUserIds, arrivals[i].user);
    const std::string message = message_of(arrivals[i], user, i);
    producer.send(topic, user, message);
    bytes += message.size();
  }
  producer.flush();
  return static_cast<double>(bytes) / static_cast<double>(events);
}

Numbers measure_propagation(const Servers& servers, const PropagationOptions& options) {
  const std::vector<Arrival> arrivals = make_arrivals(kArrivals, options.users);
  testing::KafkaProducer producer(servers.kafka.address());
  Watcher watcher(servers.redis);
  // Users that no run before has made.
  const auto first_probe = static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds(1));
  const auto produce = [&](std::uint64_t i, const std::string& user) {
    producer.send(options.topic, user, message_of(arrivals[i % kArrivals], user, first_probe + i));
  };
  const auto usual_user = [&](std::uint64_t i) {
    return uuid(kUserIds, arrivals[i % kArrivals].user);
  };
  const auto every = static_cast<std::uint64_t>(std::max(1.0, options.rate / kProbesPerSecond));
  const auto total =
      static_cast<std::uint64_t>(options.rate * (options.warm_up_seconds + options.seconds));
  // A producer's first message waits for a second or so, until all its connections stand.
  produce(total, usual_user(total));
  producer.flush();

  const auto start = steady_clock::now();
  const auto measured_from = start + of_seconds(options.warm_up_seconds);
  for (std::uint64_t i = 0; i < total; ++i) {
    const auto due = start + of_seconds(static_cast<double>(i) / options.rate);
    // A little later, for several at once: a sleep for each message would cost more than the
    // message.
    if (due > steady_clock::now()) std::this_thread::sleep_until(due + kOversleep);
    const bool probes = i % every == 0 && due >= measured_from;
    const std::string user = probes ? uuid(kProbeIds, first_probe + i) : usual_user(i);
    if (probes) watcher.add(user, due);
    produce(i, user);
  }
  const std::chrono::duration<double> took = steady_clock::now() - start;
  producer.flush();
  Numbers found = watcher.finish();
  found["produced_per_second"] = static_cast<double>(total) / took.count();
  return found;
}

}  // namespace fcap::bench
