#include "updater/propagation.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "harness/redis_console.h"
#include "ledger/user_key.h"
#include "redis/command.h"
#include "updater/session_stream.h"
#include "updater/topic_producer.h"

namespace fcap::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::uint64_t kProbeIds = 3;
constexpr std::chrono::milliseconds kPatience{5000};
constexpr std::chrono::microseconds kBetweenRequests{500};
constexpr std::chrono::microseconds kOversleep{500};
constexpr double kProbesPerSecond = 200;
constexpr int kLingerMs = 5;  // librdkafka's default

struct Probe {
  std::string key;
  steady_clock::time_point due;
};

/// MGET of all that is being waited for.
class PresenceRequest final : public redis::Request {
 public:
  void run(redis::Client& client, const std::vector<Probe>& probes) {
    wire.clear();
    redis::append_word_count(wire, probes.size() + 1);
    redis::append_word(wire, "MGET");
    for (const Probe& probe : probes) redis::append_word(wire, probe.key);
    present.assign(probes.size(), false);
    deadline = steady_clock::now() + kPatience;
    done_ = false;
    client.submit(*this);
    done_.wait(false);
  }
  void on_reply(std::uint32_t, const redis::Reply& reply) noexcept override {
    for (std::size_t i = 0; i < reply.elements.size(); ++i) {
      present[i] = reply.elements[i].kind == redis::Reply::Kind::kString;
    }
  }
  void on_done(redis::TransportCode) noexcept override {
    done_ = true;
    done_.notify_one();
  }
  std::vector<bool> present;

 private:
  std::atomic<bool> done_{false};
};

/// Asks for probes on a thread of its own.
class Watcher {
 public:
  explicit Watcher(const std::string& redis)
      : console_(redis), thread_([this](const std::stop_token& stop) { watch(stop); }) {}
  void add(Probe probe) {
    const std::lock_guard lock(mutex_);
    added_.push_back(std::move(probe));
  }
  /// Waits for what is still to come, and gives the delays in ms, sorted.
  std::vector<double> finish() {
    thread_.request_stop();
    thread_.join();
    std::sort(delays_ms_.begin(), delays_ms_.end());
    return delays_ms_;
  }
  [[nodiscard]] std::size_t unseen() const noexcept { return unseen_; }

 private:
  void watch(const std::stop_token& stop) {
    std::vector<Probe> open;
    PresenceRequest request;
    for (;;) {
      const bool last = stop.stop_requested();
      {
        const std::lock_guard lock(mutex_);
        std::move(added_.begin(), added_.end(), std::back_inserter(open));
        added_.clear();
      }
      if (last && open.empty()) return;
      if (!open.empty()) {
        request.run(console_.client(), open);
        settle(open, request.present);
      }
      std::this_thread::sleep_for(kBetweenRequests);
    }
  }
  void settle(std::vector<Probe>& open, const std::vector<bool>& present) {
    const auto now = steady_clock::now();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (present[i]) {
        delays_ms_.push_back(std::chrono::duration<double, std::milli>(now - open[i].due).count());
      } else if (now - open[i].due > kPatience) {
        ++unseen_;
      } else {
        if (kept != i) open[kept] = std::move(open[i]);
        ++kept;
      }
    }
    open.resize(kept);
  }

  RedisConsole console_;
  std::mutex mutex_;
  std::vector<Probe> added_;  // guarded by mutex_
  std::vector<double> delays_ms_;
  std::size_t unseen_ = 0;
  std::jthread thread_;
};

/// NaN when nothing was seen.
double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return std::nan("");
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

steady_clock::duration of_seconds(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Numbers measure_propagation(const Servers& servers, const PropagationOptions& options) {
  SessionStream stream({.users = options.users, .start = base::wall_now() - std::chrono::hours(1)});
  TopicProducer producer(
      {.brokers = servers.brokers, .topic = options.topic, .linger_ms = kLingerMs});
  Watcher watcher(servers.redis);
  std::string message;
  const auto produce = [&](const Arrival& arrival, const std::string& user) {
    write_message(arrival, user, message);
    producer.send(user, message);
  };
  // A producer's first message waits for a second or so, until all its connections stand.
  const Arrival first = stream.next();
  produce(first, uuid(kUserIds, first.user));
  producer.flush();

  const auto every = static_cast<std::uint64_t>(std::max(1.0, options.rate / kProbesPerSecond));
  const auto total =
      static_cast<std::uint64_t>(options.rate * (options.warm_up_seconds + options.seconds));
  // Users that no run before has made.
  const auto first_probe = static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds(1));
  const auto start = steady_clock::now();
  const auto measured_from = start + of_seconds(options.warm_up_seconds);
  for (std::uint64_t i = 0; i < total; ++i) {
    const auto due = start + of_seconds(static_cast<double>(i) / options.rate);
    // A little later, for several at once: a sleep for each message would cost more than the
    // message.
    if (due > steady_clock::now()) std::this_thread::sleep_until(due + kOversleep);
    const Arrival arrival = stream.next();
    if (i % every != 0 || due < measured_from) {
      produce(arrival, uuid(kUserIds, arrival.user));
      continue;
    }
    const std::string user = uuid(kProbeIds, first_probe + i);
    Probe probe{.key = {}, .due = due};
    ledger::user_key("fcap", user, probe.key);
    watcher.add(std::move(probe));
    produce(arrival, user);
  }
  const std::chrono::duration<double> took = steady_clock::now() - start;
  producer.flush();
  const std::vector<double> delays = watcher.finish();
  return {{"produced_per_second", static_cast<double>(total) / took.count()},
          {"p50_ms", quantile(delays, 0.5)},
          {"p99_ms", quantile(delays, 0.99)},
          {"max_ms", quantile(delays, 1)},
          {"seen", static_cast<double>(delays.size())},
          {"unseen", static_cast<double>(watcher.unseen())}};
}

}  // namespace fcap::bench
