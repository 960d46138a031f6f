#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcap/checker.h>

#include "harness/load.h"
#include "path/population.h"

namespace fcap::bench {

/// What is asked, over and over, each time about a random user.
struct CheckWorkload {
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

/// A Checker on the console's Redis, connected, with the workload's rules and a deadline that only
/// a broken bench exceeds.
std::unique_ptr<Checker> make_checker(const RedisConsole& console, const CheckWorkload& workload,
                                      std::size_t mget_keys_max,
                                      std::size_t direct_connections = 2);

std::vector<Candidate> candidates_of(const CheckWorkload& workload);

/// Checks by `callers`, through a Checker that coalesces up to `mget_keys_max` keys.
class CheckLoad : public Load {
 public:
  CheckLoad(const RedisConsole& console, const CheckWorkload& workload, std::size_t callers,
            std::size_t mget_keys_max);

 protected:
  [[nodiscard]] const std::string& user(std::size_t turn) const {
    return workload_.users[turn % workload_.users.size()];
  }

  const CheckWorkload& workload_;
  std::size_t callers_;
  std::vector<Candidate> candidates_;
  std::unique_ptr<Checker> checker_;
};

/// check_async(): as many checks as callers always in flight; each answer starts the next.
class AsyncChecks final : public CheckLoad {
 public:
  using CheckLoad::CheckLoad;

 private:
  void start() override;
  void submit(std::size_t turn);

  std::size_t turn_ = 0;  // the I/O thread's, once answers come
};

/// check(): as many threads as callers.
class BlockingChecks final : public CheckLoad {
 public:
  using CheckLoad::CheckLoad;

 private:
  void start() override;
  void stopped() override { threads_.clear(); }
  void call(std::size_t turn);

  std::vector<std::jthread> threads_;
};

/// A layout's requests: a number of them always in flight over one connection.
class LayoutRequests final : public Load {
 public:
  LayoutRequests(RedisConsole& console, Layout& layout, const CheckWorkload& workload,
                 std::size_t in_flight);
  ~LayoutRequests() override;

 private:
  class OneRequest;
  void start() override;

  RedisConsole& console_;
  Layout& layout_;  // the I/O thread's, once answers come, like turn_
  const CheckWorkload& workload_;
  std::size_t turn_ = 0;
  std::vector<std::unique_ptr<OneRequest>> requests_;
};

}  // namespace fcap::bench
