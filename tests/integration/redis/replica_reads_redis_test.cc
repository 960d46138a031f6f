// Checks that are read from a replica: real Sentinels, a master and two replicas.
#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcap/redis_url.h>

#include "support/checker_world.h"
#include "support/redis_clients.h"
#include "support/redis_sentinels.h"
#include "support/reserving.h"

namespace fcap {
namespace replica_reads_redis_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RedisSentinels;
using testing::RedisServer;
using testing::wait_until;

// A user who has seen c1 once, which is all that the rule allows.
class ReplicaReads : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    servers_ = std::make_unique<RedisSentinels>();
    open("");
    record();
  }

  // Makes the store and the Checker over it, with these parameters of the URL.
  void open(const std::string& parameters) {
    checker_.reset();
    RedisOptions patient = testing::quick_options({});
    patient.connect_timeout = patient.stale_reset = 60s;
    RedisOptions redis = parse_redis_url(servers_->url() + parameters, patient).value();
    redis.log = [this](LogLevel /*level*/, std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_.append(line).append("\n");
    };
    auto store = make_redis_store(redis);
    ASSERT_TRUE(store.ok()) << store.status().text();
    store_ = std::move(store).value();
    CheckerOptions options;
    options.store = store_;
    options.deadline = 30s;
    options.clock = [] { return testing::kCheckedAt; };
    auto made = Checker::create(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    checker_->set_rules(testing::daily_rule(1));
    EXPECT_TRUE(wait_until([&] { return checker_->health().store.connected; })) << log();
  }

  // open(), and waits until the replica has been seen to be well.
  void open_with_replica(const std::string& parameters) {
    open(parameters);
    EXPECT_TRUE(wait_until([&] { return replica().find("ms behind") != std::string::npos; }))
        << replica() << "\n"
        << log();
  }

  void record() {
    const ledger::Entry entry{.time = testing::kCheckedAt - 1min,
                              .campaign = ledger::id_hash("c1"),
                              .creative = 0,
                              .type = EventType::kImpression,
                              .fingerprint = 1};
    EXPECT_EQ(servers_->command(0, {"SET", "fcap:!config", testing::config_for_reserving()}), "OK");
    std::string bytes;
    ledger::append_entries({&entry, 1}, bytes);
    EXPECT_EQ(append(bytes), StoreCode::kOk);
    for (const int node : {1, 2}) {
      EXPECT_TRUE(wait_until([&] {
        return servers_->command(node, {"EXISTS", "fcap:{u}"}) == "1";
      }));
    }
  }

  StoreCode append(std::string_view bytes) {
    const auto expiry =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) + 1h;
    return testing::StoreCalls(*store_).append("fcap:{u}", bytes, expiry).code;
  }

  Verdict check() {
    const Candidate candidates[] = {{"c1"}};
    return checker_->check("u", candidates).verdicts.front();
  }
  static bool is_cap(const Verdict& verdict) { return verdict.reason == Reason::kCapped; }

  // What the health report says about the replica.
  [[nodiscard]] std::string replica() const {
    for (const auto& [name, value] : checker_->health().store.more) {
      if (name == "replica") return value;
    }
    return {};
  }
  [[nodiscard]] std::string log() const {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }

  void freeze_sentinels() {
    for (int node = RedisSentinels::kFirstSentinel; node < RedisSentinels::kNodes; ++node) {
      servers_->freeze(node);
    }
  }

  // Kills the master, of which nobody takes the place, and expects that checks fail open.
  void expect_no_stand_in() {
    servers_->kill(0);
    EXPECT_TRUE(wait_until([&] {
      const Verdict verdict = check();
      EXPECT_FALSE(verdict.stale);
      return verdict.allowed && verdict.reason != Reason::kPassed;
    })) << log();
    for (int i = 0; i < 100; ++i) {
      const Verdict verdict = check();
      EXPECT_TRUE(verdict.allowed);
      EXPECT_FALSE(verdict.stale);
    }
    EXPECT_THAT(log(), Not(HasSubstr("checks read from the replica")));
    EXPECT_EQ(checker_->stats().reads.stale, 0U);
  }

  // Checks all the time, from before the master is killed: on a busy machine the failover may be
  // over when the command that kills it has ended.
  class Watch {
   public:
    explicit Watch(ReplicaReads& test)
        : thread_([this, &test](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
              const Verdict verdict = test.check();
              if (verdict.stale) stale_ = true;
              if (verdict.allowed && verdict.reason != Reason::kPassed) failed_open_ = true;
              std::this_thread::sleep_for(1ms);
            }
          }) {}
    [[nodiscard]] bool stale() const { return stale_; }
    [[nodiscard]] bool failed_open() const { return failed_open_; }

   private:
    std::atomic<bool> stale_{false};
    std::atomic<bool> failed_open_{false};
    std::jthread thread_;
  };

  std::unique_ptr<RedisSentinels> servers_;
  mutable std::mutex log_mutex_;
  std::string log_;
  std::shared_ptr<Store> store_;
  std::unique_ptr<Checker> checker_;
};

TEST_F(ReplicaReads, KeepCappingForAKilledMasterUntilTheFailoverIsOver) {
  open_with_replica("?replica_reads=when_master_fails&replica_lag_max=60s");
  EXPECT_TRUE(wait_until([&] { return check().complete; })) << log();
  Verdict verdict = check();
  EXPECT_TRUE(is_cap(verdict));
  EXPECT_FALSE(verdict.stale);

  servers_->kill_master(0);
  std::uint64_t stale = 0;
  bool told = false;
  const auto over = [&] {
    verdict = check();
    EXPECT_TRUE(is_cap(verdict)) << to_string(verdict.reason) << "\n" << log();
    EXPECT_FALSE(verdict.stale && verdict.complete);
    if (verdict.stale && stale++ == 0) {
      // Writes and plain reads are the master's.
      EXPECT_NE(append("x"), StoreCode::kOk);
      EXPECT_NE(testing::StoreCalls(*store_).get("fcap:{u}").code, StoreCode::kOk);
    }
    told = told || (checker_->health().store.reads_replica && verdict.stale);
    return stale > 0 && !verdict.stale;
  };
  EXPECT_TRUE(wait_until(over)) << log();
  EXPECT_TRUE(wait_until([&] { return check().complete; })) << "once the configuration is read";
  EXPECT_GT(stale, 0U);
  EXPECT_TRUE(told);
  EXPECT_EQ(checker_->stats().reads.stale, stale);
  EXPECT_THAT(log(), HasSubstr("until there is a master again"));
  const int master = servers_->wait_for_other_master(0);
  ASSERT_GT(master, 0);
  EXPECT_TRUE(wait_until([&] { return checker_->health().store.connected; }));
  EXPECT_FALSE(check().stale);
  EXPECT_FALSE(checker_->health().store.reads_replica);
  EXPECT_EQ(append(""), StoreCode::kOk);
  for (const int node : {1, 2}) {
    EXPECT_THAT(servers_->command(node, {"INFO", "errorstats"}), Not(HasSubstr("READONLY")));
  }
}

TEST_F(ReplicaReads, StandInOnceMoreForTheNextMaster) {
  open_with_replica("?replica_reads=when_master_fails&replica_lag_max=60s");
  for (int round = 0; round < 2; ++round) {
    // On a busy machine, Sentinels may have replaced one that was only slow.
    const int former = servers_->master();
    const Watch watch(*this);
    servers_->kill_master(former);
    EXPECT_TRUE(wait_until([&] { return watch.stale(); })) << round << "\n" << log();
    ASSERT_GE(servers_->wait_for_other_master(former), 0);
    EXPECT_TRUE(wait_until([&] { return is_cap(check()) && !check().stale; })) << log();
    servers_->start(former);
    ASSERT_TRUE(servers_->wait_for_replicas(2));
    EXPECT_TRUE(wait_until([&] { return replica().find("ms behind") != std::string::npos; }))
        << replica() << "\n"
        << log();
  }
}

TEST_F(ReplicaReads, AreNotMadeWhereTheyAreNotAllowed) {
  open("");
  EXPECT_TRUE(is_cap(check()));
  const Watch watch(*this);
  servers_->kill_master(0);
  EXPECT_TRUE(wait_until([&] { return watch.failed_open() && is_cap(check()); })) << log();
  EXPECT_FALSE(watch.stale());
  EXPECT_EQ(replica(), "");
}

TEST_F(ReplicaReads, AreNotMadeFromAReplicaWhoseLinkIsDown) {
  // With one replica left, the Checker has no other replica to switch to.
  servers_->notice_soon();
  servers_->kill(2);
  for (int node = RedisSentinels::kFirstSentinel; node < RedisSentinels::kNodes; ++node) {
    ASSERT_TRUE(wait_until([&] {
      return servers_->command(node, {"SENTINEL", "REPLICAS", "fcap"}).find("s_down") !=
             std::string::npos;
    }));
  }
  open_with_replica("?replica_reads=when_master_fails&replica_lag_max=60s");
  freeze_sentinels();
  servers_->command(1, {"REPLICAOF", "127.0.0.1", "1"});
  EXPECT_TRUE(wait_until([&] { return log().find("cannot stand in") != std::string::npos; }))
      << replica();
  EXPECT_THAT(replica(), HasSubstr("its link to the master is down"));
  // It must be down for two seconds before the master is lost, not because of that.
  std::this_thread::sleep_for(2100ms);
  expect_no_stand_in();
}

TEST_F(ReplicaReads, AreNotMadeFromAReplicaThatIsTooFarBehind) {
  open_with_replica("?replica_reads=when_master_fails&replica_lag_max=2s");
  freeze_sentinels();
  // Redis pauses what its master sends as it pauses clients' writes; reads go on.
  for (const int node : {1, 2}) {
    EXPECT_EQ(servers_->command(node, {"CLIENT", "PAUSE", "600000", "WRITE"}), "OK");
  }
  const auto reported = [&] {
    servers_->command(0, {"SET", "k", "v"});
    return log().find("cannot stand in for the master: ") != std::string::npos;
  };
  EXPECT_TRUE(wait_until(reported)) << replica();
  EXPECT_THAT(replica(), HasSubstr("behind"));
  expect_no_stand_in();
}

TEST_F(ReplicaReads, AreMadeFromWhicheverAnswersFaster) {
  open_with_replica("?replica_reads=nearest&replica_lag_max=60s");
  freeze_sentinels();
  // The master is slower than anything that this machine may do to a replica: it does not answer.
  servers_->freeze(0);
  EXPECT_TRUE(wait_until([&] {
    return log().find("which answers faster than the master") != std::string::npos;
  })) << replica();
  const Verdict meanwhile = check();
  EXPECT_TRUE(is_cap(meanwhile));
  EXPECT_TRUE(meanwhile.stale);
  servers_->thaw(0);
  EXPECT_EQ(append(""), StoreCode::kOk);
  servers_->kill(1);
  servers_->kill(2);
  EXPECT_TRUE(wait_until([&] {
    const Verdict verdict = check();
    return is_cap(verdict) && !verdict.stale;
  })) << log();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(is_cap(check()));
}

TEST_F(ReplicaReads, NeedAnAccountOnTheSentinelsThatMayListReplicas) {
  for (int node = RedisSentinels::kFirstSentinel; node < RedisSentinels::kNodes; ++node) {
    EXPECT_EQ(servers_->command(node, {"ACL", "SETUSER", "default", "-sentinel|replicas"}), "OK");
  }
  open("?replica_reads=when_master_fails");
  EXPECT_TRUE(wait_until([&] { return log().find("sentinel|replicas") != std::string::npos; }))
      << log();
  EXPECT_TRUE(is_cap(check()));
  EXPECT_THAT(replica(), HasSubstr("no replica is known"));
}

}  // namespace replica_reads_redis_test
}  // namespace fcap
