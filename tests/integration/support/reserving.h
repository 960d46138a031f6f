#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/checker.h>

#include "redis/config_record.h"
#include "support/shipped_account.h"

namespace fcap::testing {

/// What an updater records.
inline std::string config_for_reserving() {
  redis::ConfigRecord record;
  record.key_prefix = "fcap";
  record.retention = kDefaultRetention;
  record.null_user_ids = {kNullUserId};
  return redis::encode_config(record);
}

/// The password of "reserver" on servers that make_reserver() was given.
inline constexpr const char* kReserverPassword = "secret";

/// Makes the shipped account that Checkers reserve with; `command` runs one on the server.
inline void make_reserver(
    const std::function<std::string(const std::vector<std::string>&)>& command) {
  std::vector<std::string> words = {"ACL", "SETUSER", "reserver", "on",
                                    std::string(">") + kReserverPassword};
  for (const std::string& right : shipped_rights("reserver")) words.push_back(right);
  EXPECT_EQ(command(words), "OK");
}

/// Options of a Checker with that account, patient enough for a slow machine.
inline CheckerOptions reserver_options(RedisOptions redis) {
  CheckerOptions options;
  options.redis = std::move(redis);
  options.redis.user = "reserver";
  options.redis.password = kReserverPassword;
  options.redis.connect_timeout = std::chrono::seconds(30);
  options.redis.stale_reset = std::chrono::seconds(30);
  options.deadline = std::chrono::seconds(30);
  return options;
}

/// At most `limit` impressions of any campaign in a day.
inline std::shared_ptr<const RuleSet> daily_limit(std::uint32_t limit) {
  Rule rule;
  rule.id = "daily";
  rule.target = "*";
  rule.limit = limit;
  rule.window.length = std::chrono::hours(24);
  auto built = RuleSet::build({.version = limit, .rules = {rule}, .campaigns = {}}, {});
  EXPECT_TRUE(built.ok()) << built.status().text();
  return built.ok() ? built.value() : nullptr;
}

/// A Checker that may reserve by now; null if it never may.
inline std::unique_ptr<Checker> reserving_checker(const CheckerOptions& options,
                                                  std::uint32_t limit) {
  auto made = Checker::create(options);
  if (!made.ok()) return nullptr;
  made.value()->set_rules(daily_limit(limit));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < until) {
    const HardResult tried =
        made.value()->hard({HardCall::kReserve, {"nobody-else", {"c"}, "probe"}});
    if (tried.allowed) return std::move(made).value();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return nullptr;
}

}  // namespace fcap::testing
