// How many checks a second one client core makes against one Redis, and what a check costs either
// side:
//   ledger    libfcap's Checker, completion form: one packed record a user (GETs coalesced or
//   plain) zset      a sorted set per user and campaign, 10 ZCOUNT pipelined for each request, over
//   the same
//             transport: what is compared is the layout
// Prints one JSON object. bench/run runs it beside redis-benchmark.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/resource.h>

#include <fcap/checker.h>

#include "ledger/encode.h"
#include "ledger/user_key.h"
#include "path/population.h"
#include "redis/client.h"
#include "redis/redis_store.h"

namespace fcap::bench {
namespace {

using std::chrono::steady_clock;

struct Flags {
  std::string redis = "127.0.0.1:6379";
  std::string layout = "ledger";
  std::size_t users = 100'000;
  std::size_t in_flight = 64;
  std::size_t mget = 64;
  double seconds = 5;
  bool populate = false;
};

Instant now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

double process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

RedisOptions redis_options(const Flags& flags) {
  RedisOptions options;
  options.addresses = {flags.redis};
  options.mget_keys_max = flags.mget;
  return options;
}

std::string zset_key(std::size_t user, std::size_t campaign) {
  return "z:{" + user_id(user) + "}:" + campaign_id(campaign);
}

/// Any number of commands that go out together; waits for all of them.
class Commands final : public redis::Request {
 public:
  void run(redis::Client& client) {
    deadline = steady_clock::now() + std::chrono::seconds(60);
    client.submit(*this);
    done_.wait(false);
    if (failed_) {
      std::fprintf(stderr, "Redis refused a command of the population\n");
      std::exit(1);
    }
  }
  void on_reply(std::uint32_t, const redis::Reply& reply) noexcept override {
    if (reply.kind == redis::Reply::Kind::kError) failed_ = true;
  }
  void on_done(redis::TransportCode code) noexcept override {
    if (code != redis::TransportCode::kOk) failed_ = true;
    done_ = true;
    done_.notify_one();
  }

 private:
  std::atomic<bool> done_{false};
  bool failed_ = false;
};

void populate(redis::Client& client, const Flags& flags) {
  const Population population{.users = flags.users};
  constexpr std::size_t kUsersATime = 200;
  for (std::size_t first = 0; first < flags.users; first += kUsersATime) {
    Commands commands;
    commands.command_count = 0;
    for (std::size_t user = first; user < std::min(first + kUsersATime, flags.users); ++user) {
      const auto entries = impressions_of(population, user, now());
      if (flags.layout == "zset") {
        for (std::size_t i = 0; i < entries.size(); ++i) {
          redis::append_command(commands.wire, {"ZADD", zset_key(user, i / population.impressions),
                                                std::to_string(to_ms(entries[i].time)),
                                                std::to_string(entries[i].fingerprint)});
        }
        commands.command_count += static_cast<std::uint32_t>(entries.size());
        continue;
      }
      ledger::Ledger ledger;
      for (const ledger::Entry& entry : entries) ledger.merge(entry);
      const auto record = ledger::compact(ledger, {}, {.trim_now = now()}).record;
      std::string key;
      ledger::user_key("fcap", user_id(user), key);
      redis::append_command(commands.wire, {"SET", key, record, "PX", "2764800000"});
      ++commands.command_count;
    }
    commands.run(client);
  }
}

/// Keeps a number of requests in flight until told to stop.
class Load {
 public:
  virtual ~Load() = default;
  virtual void begin() = 0;
  void stop_and_wait() {
    stop_ = true;
    while (running_.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  [[nodiscard]] std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

 protected:
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> running_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> failed_{0};
};

class LedgerLoad final : public Load {
 public:
  explicit LedgerLoad(const Flags& flags) : flags_(flags) {
    const Population population{.users = flags.users};
    CheckerOptions options;
    options.redis = redis_options(flags);
    options.deadline = std::chrono::seconds(2);
    auto made = Checker::create(std::move(options));
    if (!made.ok()) throw std::runtime_error(made.status().text());
    checker_ = std::move(made).value();
    checker_->set_rules(make_rules(population));
    for (std::size_t c = 0; c < population.campaigns; ++c) campaigns_.push_back(campaign_id(c));
    for (const std::string& id : campaigns_) candidates_.push_back({id, {}});
    for (std::size_t u = 0; u < flags.users; ++u) users_.push_back(user_id(u));
  }

  void begin() override {
    running_ = flags_.in_flight;
    for (std::size_t i = 0; i < flags_.in_flight; ++i) submit();
  }

 private:
  void submit() {
    const std::string& user = users_[random_() % users_.size()];
    checker_->check_async(user, candidates_, {}, [this](CheckResult result) {
      (result.reason == Reason::kPassed ? done_ : failed_).fetch_add(1, std::memory_order_relaxed);
      if (stop_.load(std::memory_order_relaxed)) {
        running_.fetch_sub(1);
      } else {
        submit();
      }
    });
  }

  Flags flags_;
  std::vector<std::string> users_;
  std::vector<std::string> campaigns_;
  std::vector<Candidate> candidates_;
  std::minstd_rand random_;  // the first requests by the main thread, then by the I/O thread alone
  std::unique_ptr<Checker> checker_;
};

class ZsetLoad final : public Load {
 public:
  ZsetLoad(const Flags& flags, redis::Client& client) : client_(client) {
    for (std::size_t i = 0; i < flags.in_flight; ++i) {
      requests_.push_back(std::make_unique<OneRequest>(*this, flags.users, i));
    }
  }
  void begin() override {
    running_ = requests_.size();
    for (auto& request : requests_) request->submit();
  }

 private:
  class OneRequest final : public redis::Request {
   public:
    OneRequest(ZsetLoad& load, std::size_t users, std::size_t seed)
        : load_(load), users_(users), random_(static_cast<unsigned>(seed + 1)) {
      command_count = 10;
    }
    void submit() {
      const std::size_t user = random_() % users_;
      const std::string since = std::to_string(to_ms(now()) - 86'400'000);
      wire.clear();
      for (std::size_t c = 0; c < 10; ++c) {
        redis::append_command(wire, {"ZCOUNT", zset_key(user, c), since, "+inf"});
      }
      deadline = steady_clock::now() + std::chrono::seconds(2);
      load_.client_.submit(*this);
    }
    void on_reply(std::uint32_t, const redis::Reply& reply) noexcept override {
      ok_ = ok_ && reply.kind == redis::Reply::Kind::kInteger;
    }
    void on_done(redis::TransportCode code) noexcept override {
      const bool passed = std::exchange(ok_, true) && code == redis::TransportCode::kOk;
      (passed ? load_.done_ : load_.failed_).fetch_add(1, std::memory_order_relaxed);
      if (load_.stop_.load(std::memory_order_relaxed)) {
        load_.running_.fetch_sub(1);
      } else {
        submit();
      }
    }

   private:
    ZsetLoad& load_;
    std::size_t users_;
    std::minstd_rand random_;
    bool ok_ = true;
  };

  redis::Client& client_;
  std::vector<std::unique_ptr<OneRequest>> requests_;
};

int measure(const Flags& flags) {
  auto made = redis::Client::create(redis_options(flags));
  if (!made.ok()) throw std::runtime_error(made.status().text());
  const std::unique_ptr<redis::Client> client = std::move(made).value();
  while (!client->connected()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (flags.populate) populate(*client, flags);
  std::unique_ptr<Load> load;
  if (flags.layout == "zset") {
    load = std::make_unique<ZsetLoad>(flags, *client);
  } else {
    load = std::make_unique<LedgerLoad>(flags);
  }
  load->begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const std::uint64_t done_before = load->done();
  const double cpu_before = process_cpu_seconds();
  const auto begin = steady_clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(flags.seconds));
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  const auto done = static_cast<double>(load->done() - done_before);
  const double cpu = process_cpu_seconds() - cpu_before;
  load->stop_and_wait();
  std::printf(
      "{\"layout\":\"%s\",\"mget\":%zu,\"in_flight\":%zu,\"users\":%zu,\"requests_per_second\":%."
      "0f,"
      "\"client_cpu_us\":%.3f,\"failed\":%llu}\n",
      flags.layout.c_str(), flags.mget, flags.in_flight, flags.users, done / seconds,
      cpu / done * 1e6, static_cast<unsigned long long>(load->failed()));
  return 0;
}

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::Flags flags;
  CLI::App app("Checks a second against one Redis, by layout.");
  app.add_option("--redis", flags.redis, "Redis, host:port")->capture_default_str();
  app.add_option("--layout", flags.layout, "ledger or zset")
      ->check(CLI::IsMember({"ledger", "zset"}))
      ->capture_default_str();
  app.add_option("--users", flags.users, "Users in Redis")->capture_default_str();
  app.add_option("--in-flight", flags.in_flight, "Requests in flight")->capture_default_str();
  app.add_option("--mget", flags.mget, "GETs that may travel as one MGET; 1: never")
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "How long to measure")->capture_default_str();
  app.add_flag("--populate", flags.populate, "Write the users' history first");
  CLI11_PARSE(app, argc, argv);
  try {
    return fcap::bench::measure(flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "check_throughput: %s\n", error.what());
    return 1;
  }
}
