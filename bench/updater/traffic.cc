// The events, what a topic is filled with, and live ones.
#include <future>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "base/clock.h"
#include "harness/redis_console.h"
#include "ledger/encode.h"
#include "ledger/ids.h"
#include "path/population.h"
#include "redis/command.h"
#include "updater/measuring.h"

namespace fcap::bench {
namespace {

// This is the traffic that is modelled, not how fast it is produced.
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

constexpr std::chrono::milliseconds kDeliveredWithin{5000};
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
  Clock::time_point due;
};

// Which of the records are there.
std::vector<bool> present(RedisConsole& console, const std::vector<Probe>& probes) {
  std::vector<bool> found;
  CommandBatch batch([&found](std::uint32_t, const redis::Reply& reply) {
    for (const redis::Reply& record : reply.elements) {
      found.push_back(record.kind == redis::Reply::Kind::kString);
    }
  });
  batch.command_count = 1;
  redis::append_word_count(batch.wire, 1 + probes.size());
  redis::append_word(batch.wire, "MGET");
  for (const Probe& probe : probes) redis::append_word(batch.wire, probe.key);
  console.run(batch);
  return found;
}

// Asks for the records of probes, in the order in which these are due, until they are there.
Numbers watch(const testing::RedisServer& redis, const std::vector<Probe>& probes) {
  RedisConsole console(redis.address());
  Durations delays;
  double unseen = 0;
  std::vector<Probe> open;
  for (auto next = probes.begin(); next != probes.end() || !open.empty();) {
    std::this_thread::sleep_for(kBetweenRequests);
    while (next != probes.end() && next->due <= Clock::now()) open.push_back(*next++);
    if (open.empty()) continue;
    const std::vector<bool> seen = present(console, open);
    const auto now = Clock::now();
    std::vector<Probe> missing;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (seen[i]) {
        delays.record(now - open[i].due);
      } else if (now - open[i].due > kDeliveredWithin) {
        ++unseen;
      } else {
        missing.push_back(std::move(open[i]));
      }
    }
    open = std::move(missing);
  }
  return {{"p50_ms", delays.percentile_us(0.5) / 1000},
          {"p99_ms", delays.percentile_us(0.99) / 1000},
          {"max_ms", delays.percentile_us(1) / 1000},
          {"unseen", unseen}};
}

}  // namespace

double fill_topic(const Servers& servers, const std::string& topic, std::uint64_t events) {
  const std::vector<Arrival> arrivals = make_arrivals(events, events / 10);
  testing::KafkaProducer producer(servers.kafka->brokers());
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

void write_shared_notes(const Servers& servers, std::uint64_t events) {
  RedisConsole console(servers.redis.address());
  // Their lives end later than those of real notes, so that they are live while the topic is read.
  const Instant expires = base::wall_now() + std::chrono::hours(1);
  const std::vector<Arrival> arrivals = make_arrivals(events, events / 10);
  send_each(console, events, [&](CommandBatch& batch, std::size_t i) {
    const Arrival& arrival = arrivals[i];
    std::string frame;
    ledger::append_reservation(
        {.event = {.time = instant_from_ms(arrival.shown_ms),
                   .campaign = ledger::id_hash(campaign_id(arrival.campaign)),
                   .fingerprint = ledger::fingerprint(uuid(kImpressionIds, i))},
         .expires = expires},
        frame);
    append(batch, {"APPEND", key_of(uuid(kUserIds, arrival.user)), frame});
  });
}

Numbers measure_propagation(const Servers& servers, const PropagationOptions& options) {
  const std::vector<Arrival> arrivals = make_arrivals(kArrivals, options.users);
  testing::KafkaProducer producer(servers.kafka->brokers());
  // Users that no run before has made.
  const auto first_probe = static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds(1));
  const auto every = static_cast<std::uint64_t>(std::max(1.0, options.rate / kProbesPerSecond));
  const auto warm_up = static_cast<std::uint64_t>(options.rate * options.warm_up_seconds);
  const auto total =
      static_cast<std::uint64_t>(options.rate * (options.warm_up_seconds + options.seconds));
  const auto user_of = [&](std::uint64_t i) {
    const bool probes = i >= warm_up && i % every == 0 && i < total;
    return probes ? uuid(kProbeIds, first_probe + i) : uuid(kUserIds, arrivals[i % kArrivals].user);
  };
  const auto produce = [&](std::uint64_t i) {
    const std::string user = user_of(i);
    producer.send(options.topic, user, message_of(arrivals[i % kArrivals], user, first_probe + i));
  };
  // A producer's first message waits for a second or so, until all its connections stand.
  produce(total);
  producer.flush();

  const auto start = Clock::now();
  const auto due = [&](std::uint64_t i) {
    const std::chrono::duration<double> since(static_cast<double>(i) / options.rate);
    return start + std::chrono::duration_cast<Clock::duration>(since);
  };
  auto produced = std::async(std::launch::async, [&] {
    for (std::uint64_t i = 0; i < total; ++i) {
      // A little later, for several at once: a sleep for each message would cost more than the
      // message.
      if (due(i) > Clock::now()) std::this_thread::sleep_until(due(i) + kOversleep);
      produce(i);
    }
    const double took = seconds_since(start);
    producer.flush();
    return static_cast<double>(total) / took;
  });
  std::vector<Probe> probes;
  for (std::uint64_t i = (warm_up + every - 1) / every * every; i < total; i += every) {
    probes.push_back({key_of(user_of(i)), due(i)});
  }
  Numbers found = watch(servers.redis, probes);
  found["produced_per_second"] = produced.get();
  return found;
}

}  // namespace fcap::bench
