// How long an event takes from the producer to a reader: impressions are produced at a fixed rate;
// some are of users of their own, and these users' records are asked for until they are there.
// Times run from when a message was due, not from when it could be sent (no coordinated omission).
// Prints one JSON object.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ledger/user_key.h"
#include "redis/client.h"
#include "redis/command.h"
#include "updater/session_stream.h"
#include "updater/topic_producer.h"

namespace {

using namespace fcap;
using std::chrono::steady_clock;

struct Flags {
  std::string brokers = "127.0.0.1:9092";
  std::string topic = "live";
  std::string redis = "127.0.0.1:6379";
  double rate = 50'000;
  double seconds = 10;
  double warm_up_seconds = 10;
  std::size_t users = 100'000;
  double probes_per_second = 200;
};

constexpr std::uint64_t kProbeIds = 3;
constexpr std::chrono::milliseconds kPatience{5000};
constexpr std::chrono::microseconds kBetweenLooks{500};
constexpr std::chrono::microseconds kOversleep{500};
constexpr int kLingerMs = 5;  // librdkafka's default

struct Probe {
  std::string key;
  steady_clock::time_point due;
};

/// MGET of all that is being waited for.
class Look final : public redis::Request {
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

/// Looks for probes on a thread of its own.
class Watcher {
 public:
  explicit Watcher(const Flags& flags) {
    RedisOptions options;
    options.addresses = {flags.redis};
    auto made = redis::Client::create(options);
    if (!made.ok()) throw std::runtime_error(made.status().text());
    client_ = std::move(made).value();
    thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  }
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
    Look look;
    for (;;) {
      const bool last = stop.stop_requested();
      {
        const std::lock_guard lock(mutex_);
        std::move(added_.begin(), added_.end(), std::back_inserter(open));
        added_.clear();
      }
      if (last && open.empty()) return;
      if (!open.empty()) {
        look.run(*client_, open);
        settle(open, look.present);
      }
      std::this_thread::sleep_for(kBetweenLooks);
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

  std::unique_ptr<redis::Client> client_;
  std::mutex mutex_;
  std::vector<Probe> added_;  // guarded by mutex_
  std::vector<double> delays_ms_;
  std::size_t unseen_ = 0;
  std::jthread thread_;
};

/// As JSON; null when nothing was seen.
std::string quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return "null";
  const auto at = static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1));
  return fmt::format("{:.2f}", sorted[at]);
}

int measure(const Flags& flags) {
  bench::SessionOptions sessions;
  sessions.users = flags.users;
  sessions.start = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now() -
                                                                 std::chrono::hours(1));
  bench::SessionStream stream(sessions);
  bench::TopicProducer producer(
      {.brokers = flags.brokers, .topic = flags.topic, .linger_ms = kLingerMs});
  Watcher watcher(flags);
  const auto every =
      static_cast<std::uint64_t>(std::max(1.0, flags.rate / flags.probes_per_second));
  const auto total =
      static_cast<std::uint64_t>(flags.rate * (flags.warm_up_seconds + flags.seconds));
  // Users that no run before has made.
  const auto first_probe = static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds(1));
  std::string user;
  std::string message;
  // A producer's first message waits for a second or so, until all its connections stand.
  const bench::Impression first = stream.next();
  user = bench::uuid(bench::kUserIds, first.user);
  bench::write_message(first, user, message);
  producer.send(user, message);
  producer.flush();
  const auto start = steady_clock::now();
  const auto measured_from = start + std::chrono::duration_cast<steady_clock::duration>(
                                         std::chrono::duration<double>(flags.warm_up_seconds));
  double behind_ms_max = 0;
  for (std::uint64_t i = 0; i < total; ++i) {
    const auto due =
        start + std::chrono::duration_cast<steady_clock::duration>(
                    std::chrono::duration<double>(static_cast<double>(i) / flags.rate));
    const auto now = steady_clock::now();
    // A little later, for several at once: a sleep for each message would cost more than the
    // message.
    if (due > now) std::this_thread::sleep_until(due + kOversleep);
    bench::Impression impression = stream.next();
    const bool probe = i % every == 0 && due >= measured_from;
    user =
        bench::uuid(probe ? kProbeIds : bench::kUserIds, probe ? first_probe + i : impression.user);
    bench::write_message(impression, user, message);
    if (probe) {
      Probe waited{.key = {}, .due = due};
      ledger::user_key("fcap", user, waited.key);
      watcher.add(std::move(waited));
      const std::chrono::duration<double, std::milli> behind = now - due;
      behind_ms_max = std::max(behind_ms_max, behind.count());
    }
    producer.send(user, message);
  }
  const std::chrono::duration<double> took = steady_clock::now() - start;
  producer.flush();
  const std::vector<double> delays = watcher.finish();
  fmt::print(R"({{"asked_per_second": {:.0f}, "produced_per_second": {:.0f}, "p50_ms": {}, )"
             R"("p99_ms": {}, "max_ms": {}, "seen": {}, "unseen": {}, )"
             R"("producer_behind_ms_max": {:.2f}}})"
             "\n",
             flags.rate, static_cast<double>(total) / took.count(), quantile(delays, 0.5),
             quantile(delays, 0.99), quantile(delays, 1), delays.size(), watcher.unseen(),
             behind_ms_max);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Measures how long events take to become visible.");
  app.add_option("--brokers", flags.brokers, "host:port")->capture_default_str();
  app.add_option("--topic", flags.topic, "The topic that the updater reads")->capture_default_str();
  app.add_option("--redis", flags.redis, "host:port")->capture_default_str();
  app.add_option("--rate", flags.rate, "Events a second")->capture_default_str();
  app.add_option("--seconds", flags.seconds, "How long it measures")->capture_default_str();
  app.add_option("--warm-up", flags.warm_up_seconds,
                 "Seconds before that: the broker compiles itself")
      ->capture_default_str();
  app.add_option("--users", flags.users, "Of how many users")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return measure(flags);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "propagation: %s\n", failure.what());
    return 1;
  }
}
