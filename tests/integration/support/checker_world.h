#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/checker.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "support/redis_server.h"
#include "support/store_calls.h"

namespace fcap::testing {

inline constexpr Instant kCheckedAt = instant_from_ms(1'700'000'000'000);

/// At most `limit` impressions of c1 in a day; the rule's id is "c1-daily".
inline std::shared_ptr<const RuleSet> daily_rule(std::uint32_t limit) {
  Rule rule;
  rule.id = "c1-daily";
  rule.target = "c1";
  rule.limit = limit;
  rule.window.length = std::chrono::hours(24);
  auto built = RuleSet::build({.version = limit, .rules = {rule}, .campaigns = {}}, {});
  EXPECT_TRUE(built.ok()) << built.status().text();
  return built.ok() ? built.value() : nullptr;
}

/// A private Redis and what a test of the Checker does with it.
class CheckerWorld {
 public:
  explicit CheckerWorld(const std::vector<std::string>& server_arguments = {})
      : redis(server_arguments) {}

  /// Options that reach this Redis and judge at kCheckedAt, patient enough for a slow machine.
  [[nodiscard]] CheckerOptions options() const {
    CheckerOptions options;
    options.redis.addresses = {redis.address()};
    options.redis.connect_timeout = std::chrono::seconds(30);
    options.redis.stale_reset = std::chrono::seconds(30);
    options.redis.direct_connections = direct_connections;
    options.deadline = std::chrono::seconds(30);
    options.clock = [] { return kCheckedAt; };
    return options;
  }

  /// How many blocking checks were answered on their callers' own threads.
  static std::uint64_t direct_reads(const Checker& checker) {
    for (const auto& [name, value] : checker.health().store.more) {
      if (name == "direct_reads") return std::stoull(value);
    }
    return 0;
  }

  /// A Checker whose connections stand, with at most one c1 a day.
  static std::unique_ptr<Checker> connected(CheckerOptions options) {
    const bool directly = options.store == nullptr && options.redis.direct_connections != 0;
    auto made = Checker::create(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().text();
    if (!made.ok()) return nullptr;
    made.value()->set_rules(daily_rule(1));
    const bool answers = wait_until([&] {
      return reason(*made.value(), "nobody") == Reason::kPassed &&
             (!directly || direct_reads(*made.value()) != 0);
    });
    EXPECT_TRUE(answers) << "the Checker does not reach its Redis";
    return std::move(made).value();
  }

  /// Why a check of c1 was answered as it was.
  static Reason reason(Checker& checker, std::string_view user,
                       std::chrono::microseconds deadline = std::chrono::seconds(30)) {
    const Candidate candidates[] = {{"c1"}};
    return checker.check(user, candidates, {.deadline = deadline, .now = {}, .segments = {}})
        .reason;
  }

  /// Records `count` impressions of c1 for the user, within the last day before kCheckedAt.
  void record(const std::string& user, std::uint32_t count, const std::string& prefix = "fcap") {
    std::vector<ledger::Entry> entries;
    for (std::uint32_t i = 0; i < count; ++i) {
      entries.push_back({.time = kCheckedAt - std::chrono::minutes(i + 1),
                         .campaign = ledger::id_hash("c1"),
                         .creative = 0,
                         .type = EventType::kImpression,
                         .fingerprint = i});
    }
    std::string bytes;
    ledger::append_entries(entries, bytes);
    RedisOptions reach;
    reach.addresses = {redis.address()};
    auto store = make_redis_store(reach);
    ASSERT_TRUE(store.ok()) << store.status().text();
    StoreCalls calls(*store.value());
    const Instant expiry =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) +
        std::chrono::hours(1);
    const auto append = [&] {
      return calls.append(prefix + ":{" + user + "}", bytes, expiry).code == StoreCode::kOk;
    };
    ASSERT_TRUE(wait_until(append)) << "the record could not be written";
  }

  RedisServer redis;
  std::size_t direct_connections = RedisOptions{}.direct_connections;
};

/// Several threads that do one thing over and over until they are stopped.
class Load {
 public:
  Load(int thread_count, const std::function<void()>& once) {
    for (int i = 0; i < thread_count; ++i) {
      threads_.emplace_back([once](const std::stop_token& stop) {
        while (!stop.stop_requested()) once();
      });
    }
  }

  void stop() { threads_.clear(); }

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace fcap::testing
