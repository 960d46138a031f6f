#pragma once

// A refresher of rules, and a database that it reads.
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "rule_text/snapshot.h"
#include "sources/rule_refresher.h"
#include "support/postgres_test.h"
#include "support/process.h"

namespace fcap::testing {

using sources::RefreshState;
using sources::RuleRefresher;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Far longer than anything takes: a test that waits this long has found a bug.
inline constexpr seconds kPatience{60};
/// An attempt to load takes half a minute at most; whoever needs nearly as long has waited for it.
inline constexpr seconds kHang{25};
/// So long that no test lives to see the next poll.
inline constexpr milliseconds kNever = std::chrono::hours{1};

/// A refresher, and the rule set that it handed out last.
class Running {
 public:
  explicit Running(RuleSourceOptions options)
      : refresher_(
            std::move(options), {},
            [this](std::shared_ptr<const RuleSet> set) {
              const std::lock_guard lock(mutex_);
              current_ = std::move(set);
            },
            nullptr) {}

  Status start(milliseconds wait = kPatience) { return refresher_.start(wait); }
  RuleRefresher* operator->() { return &refresher_; }
  [[nodiscard]] RefreshState state() const { return refresher_.state(); }

  std::shared_ptr<const RuleSet> current() {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  /// Whether soon there are this many rules. They are handed out a moment before the state tells.
  bool reaches(std::size_t rules) {
    return wait_until(
        [&] {
          return current() && current()->rules().size() == rules && state().rule_count == rules;
        },
        kPatience);
  }
  /// Whether soon a reload has been refused that was not at `before`.
  bool refuses_since(const RefreshState& before) {
    return wait_until([&] { return state().refused > before.refused; }, kPatience);
  }
  bool fails_since(const RefreshState& before) {
    return wait_until([&] { return state().failed > before.failed; }, kPatience);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const RuleSet> current_;
  RuleRefresher refresher_;  // last: its thread uses the others
};

class RuleRefresherPg : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    sql("INSERT INTO campaigns (id, cap_limit, window_seconds)"
        " SELECT 'c' || n, 3, 86400 FROM generate_series(1, 10) n");
  }

  void add_rule(const std::string& id) {
    sql("INSERT INTO cap_rules (id, scope, cap_limit, window_kind) VALUES ('" + id +
        "', 'user', 9, 'lifetime')");
  }

  [[nodiscard]] RuleSourceOptions options(milliseconds poll_interval) const {
    RuleSourceOptions options;
    options.postgres = database_;
    options.poll_interval = poll_interval;
    return options;
  }
  [[nodiscard]] std::string snapshot_file() const { return directory_.path() / "rules.snapshot"; }
  [[nodiscard]] RuleSourceOptions with_snapshot(milliseconds poll_interval) const {
    RuleSourceOptions with = options(poll_interval);
    with.snapshot_file = snapshot_file();
    return with;
  }
  /// As left behind by an earlier process: ten rules and one.
  void leave_snapshot() {
    add_rule("r1");
    Running earlier(with_snapshot(kNever));
    ASSERT_TRUE(earlier.start().ok());
    ASSERT_TRUE(wait_until([this] { return rule_text::read_snapshot(snapshot_file()).ok(); }));
    sql("DELETE FROM cap_rules");
  }
  std::string listeners() {
    return server->value(database_,
                         "SELECT count(*) FROM pg_stat_activity WHERE datname = "
                         "current_database() AND query = 'LISTEN fcap_rules'");
  }

  TemporaryDirectory directory_;
};

}  // namespace fcap::testing
