#pragma once

#include <numeric>
#include <random>
#include <thread>

#include <fcap/checker.h>

#include "harness/measure.h"
#include "path/population.h"

namespace fcap::bench {

/// What is asked, over and over, each time about a random user.
struct CheckWorkload {
  [[nodiscard]] const std::string& user(std::size_t turn) const {
    return users[turn % users.size()];
  }
  [[nodiscard]] std::vector<Candidate> candidates() const {
    std::vector<Candidate> candidates;
    for (const std::string& id : campaigns) candidates.push_back({id, {}});
    return candidates;
  }

  std::vector<std::string> users;
  std::vector<std::string> campaigns;  ///< the candidates
  std::shared_ptr<const RuleSet> rules;
  std::string key_prefix = "fcap";
};

/// The ids of so many users, side by side in an order that nothing in Redis follows: as in a
/// server, where the id was just read from the request, asking for the next costs no cache miss of
/// its own.
inline std::vector<std::string> users_in_turn(std::size_t users) {
  std::vector<std::size_t> order(users);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::minstd_rand{});
  std::vector<std::string> ids;
  ids.reserve(users);
  for (const std::size_t user : order) ids.push_back(user_id(user));
  return ids;
}

/// 10 candidates of two rules each.
inline CheckWorkload usual_workload(std::size_t users) {
  const Population population;
  return {.users = users_in_turn(users),
          .campaigns = campaign_ids(population.campaigns),
          .rules = make_rules(population.campaigns)};
}

/// Asks about a user and waits; false: no answer.
using Ask = std::function<bool(const std::string& user)>;
/// check(). All of one Checker's callers may use the same.
inline Ask blocking_check(Checker& checker, const CheckWorkload& workload) {
  return [&checker, candidates = workload.candidates()](const std::string& user) {
    return checker.check(user, candidates).reason == Reason::kPassed;
  };
}

/// With so many GETs that may travel as one MGET; 1: plain GETs.
inline RedisOptions coalescing(RedisOptions redis, std::size_t keys) {
  redis.mget_keys_max = keys;
  return redis;
}

/// Only a broken bench exceeds it.
inline constexpr std::chrono::seconds kDeadline{2};

/// A Checker that is connected, with the workload's rules.
inline std::unique_ptr<Checker> make_checker(
    const RedisOptions& redis, const CheckWorkload& workload,
    std::function<Instant()> clock = [] { return kBenchNow; }) {
  CheckerOptions options;
  options.redis = redis;
  options.key_prefix = workload.key_prefix;
  options.deadline = kDeadline;
  options.local.cached_caps_max = 0;  // every check reads
  options.clock = std::move(clock);
  std::unique_ptr<Checker> checker = testing::or_throw(Checker::create(std::move(options)));
  checker->set_rules(workload.rules);
  const Ask check = blocking_check(*checker, workload);
  if (!testing::wait_until([&] { return check(workload.users.front()); })) {
    throw std::runtime_error("the Checker does not reach Redis");
  }
  return checker;
}

/// check_async(): so many checks always in flight; each answer starts the next.
class AsyncChecks final : public Load {
 public:
  AsyncChecks(const RedisOptions& redis, const CheckWorkload& workload, std::size_t in_flight)
      : workload_(workload), in_flight_(in_flight), checker_(make_checker(redis, workload)) {}

 private:
  void start() override {
    // These turns are taken now, because turn_ is the I/O thread's once answers come.
    const std::size_t first = turn_;
    turn_ += in_flight_;
    running_ = in_flight_;
    for (std::size_t i = 0; i < in_flight_; ++i) submit(first + i);
  }

  void submit(std::size_t turn) {
    checker_->check_async(workload_.user(turn), candidates_, {}, [this](const CheckResult& result) {
      if (goes_on(result.reason == Reason::kPassed)) submit(turn_++);
    });
  }

  const CheckWorkload& workload_;
  const std::vector<Candidate> candidates_ = workload_.candidates();
  const std::size_t in_flight_;
  std::size_t turn_ = 0;  // the I/O thread's, once answers come
  std::unique_ptr<Checker> checker_;
};

/// A thread for each Ask, which asks one question after the other.
class BlockingCallers final : public Load {
 public:
  BlockingCallers(const CheckWorkload& workload, std::vector<Ask> callers)
      : workload_(workload), callers_(std::move(callers)) {}

  /// Adds p50_us, p99_us, and cpu_us of both sides.
  Numbers measure(int redis_pid, double seconds) override {
    durations_.assign(callers_.size(), {});
    Numbers found = Load::measure(redis_pid, seconds);
    threads_.clear();
    Durations all;
    for (const Durations& some : durations_) all.add(some);
    found["p50_us"] = all.percentile_us(0.5);
    found["p99_us"] = all.percentile_us(0.99);
    found["cpu_us"] = found.at("client_cpu_us") + found.at("redis_cpu_us");
    return found;
  }

 private:
  void start() override {
    running_ = callers_.size();
    for (std::size_t i = 0; i < callers_.size(); ++i) {
      threads_.emplace_back([this, i] { call(i); });
    }
  }

  void call(std::size_t caller) {
    std::size_t turn = caller * workload_.users.size() / callers_.size();
    auto begin = Clock::now();
    while (goes_on(callers_[caller](workload_.user(turn++)))) {
      const auto end = Clock::now();
      if (measuring()) durations_[caller].record(end - begin);
      begin = end;
    }
  }

  const CheckWorkload& workload_;
  const std::vector<Ask> callers_;
  std::vector<Durations> durations_;  // by caller
  std::vector<std::jthread> threads_;
};

}  // namespace fcap::bench
