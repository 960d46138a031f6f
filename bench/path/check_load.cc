#include "path/check_load.h"

#include <numeric>
#include <random>

namespace fcap::bench {

std::vector<std::string> users_in_turn(std::size_t users) {
  std::vector<std::size_t> order(users);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::minstd_rand{});
  std::vector<std::string> ids;
  ids.reserve(users);
  for (const std::size_t user : order) ids.push_back(user_id(user));
  return ids;
}

CheckWorkload usual_workload(std::size_t users) {
  const Population population;
  return {.users = users_in_turn(users),
          .campaigns = campaign_ids(population.campaigns),
          .rules = make_rules(population.campaigns)};
}

std::unique_ptr<Checker> make_checker(RedisOptions redis, const CheckWorkload& workload,
                                      std::size_t mget_keys_max, std::function<Instant()> clock) {
  CheckerOptions options;
  options.redis = std::move(redis);
  options.redis.mget_keys_max = mget_keys_max;
  options.key_prefix = workload.key_prefix;
  options.deadline = kDeadline;
  options.local.cached_caps_max = 0;  // every check reads
  options.clock = std::move(clock);
  auto made = Checker::create(std::move(options));
  if (!made.ok()) throw std::runtime_error(made.status().text());
  std::unique_ptr<Checker> checker = std::move(made).value();
  checker->set_rules(workload.rules);
  const Ask check = blocking_check(*checker, workload);
  if (!testing::wait_until([&] { return check(workload.users.front()); })) {
    throw std::runtime_error("the Checker does not reach Redis");
  }
  return checker;
}

void AsyncChecks::start() {
  // Chosen before the first answer chooses.
  const std::size_t first = turn_;
  turn_ += in_flight_;
  running_ = in_flight_;
  for (std::size_t i = 0; i < in_flight_; ++i) submit(first + i);
}

void AsyncChecks::submit(std::size_t turn) {
  checker_->check_async(workload_.user(turn), candidates_, {}, [this](const CheckResult& result) {
    count(result.reason == Reason::kPassed);
    if (should_stop()) {
      running_.fetch_sub(1);
    } else {
      submit(turn_++);
    }
  });
}

Ask blocking_check(Checker& checker, const CheckWorkload& workload) {
  return [&checker, candidates = workload.candidates()](const std::string& user) {
    return checker.check(user, candidates).reason == Reason::kPassed;
  };
}

Numbers BlockingCallers::measure(int redis_pid, double seconds) {
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

void BlockingCallers::start() {
  running_ = callers_.size();
  for (std::size_t i = 0; i < callers_.size(); ++i) {
    threads_.emplace_back([this, i] { call(i); });
  }
}

void BlockingCallers::call(std::size_t caller) {
  using Clock = std::chrono::steady_clock;
  std::size_t turn = caller * workload_.users.size() / callers_.size();
  for (auto begin = Clock::now(); !should_stop();) {
    count(callers_[caller](workload_.user(turn++)));
    const auto end = Clock::now();
    if (measuring()) durations_[caller].record(end - begin);
    begin = end;
  }
  running_.fetch_sub(1);
}

}  // namespace fcap::bench
