#pragma once

#include <thread>

#include <fcap/checker.h>

#include "harness/load.h"
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
std::vector<std::string> users_in_turn(std::size_t users);

/// 10 candidates of two rules each.
CheckWorkload usual_workload(std::size_t users);

/// As a host gets it that changes nothing.
inline std::size_t usual_mget_keys_max() {
  return RedisOptions{}.mget_keys_max;
}

/// Only a broken bench exceeds it.
inline constexpr std::chrono::seconds kDeadline{2};

inline Instant at_bench_now() {
  return kBenchNow;
}

/// A Checker that is connected, with the workload's rules.
std::unique_ptr<Checker> make_checker(RedisOptions redis, const CheckWorkload& workload,
                                      std::size_t mget_keys_max = usual_mget_keys_max(),
                                      std::function<Instant()> clock = at_bench_now);

/// check_async(): so many checks always in flight; each answer starts the next.
class AsyncChecks final : public Load {
 public:
  AsyncChecks(const RedisOptions& redis, const CheckWorkload& workload, std::size_t in_flight,
              std::size_t mget_keys_max = usual_mget_keys_max())
      : workload_(workload),
        in_flight_(in_flight),
        checker_(make_checker(redis, workload, mget_keys_max)) {}

 private:
  void start() override;
  void submit(std::size_t turn);

  const CheckWorkload& workload_;
  const std::vector<Candidate> candidates_ = workload_.candidates();
  const std::size_t in_flight_;
  std::size_t turn_ = 0;  // the I/O thread's, once answers come
  std::unique_ptr<Checker> checker_;
};

/// Asks about a user and waits; false: no answer.
using Ask = std::function<bool(const std::string& user)>;
/// check(). All of one Checker's callers may use the same.
Ask blocking_check(Checker& checker, const CheckWorkload& workload);

/// A thread for each Ask, which asks one question after the other.
class BlockingCallers final : public Load {
 public:
  BlockingCallers(const CheckWorkload& workload, std::vector<Ask> callers)
      : workload_(workload), callers_(std::move(callers)) {}

  /// Adds p50_us, p99_us, and cpu_us of both sides.
  Numbers measure(int redis_pid, double seconds) override;

 private:
  void start() override;
  void call(std::size_t caller);

  const CheckWorkload& workload_;
  const std::vector<Ask> callers_;
  std::vector<Durations> durations_;  // by caller
  std::vector<std::jthread> threads_;
};

}  // namespace fcap::bench
