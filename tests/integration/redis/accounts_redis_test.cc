// The accounts that are shipped in redis/acl, and passwords that change.
// updater/doctor_path_test.cc runs the programs under these accounts.
#include <atomic>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/store_operations.h"
#include "support/redis_clients.h"
#include "support/redis_test.h"
#include "support/shipped_account.h"

namespace fcap {
namespace accounts_redis_test {

using namespace std::chrono_literals;
using redis::TransportCode;
using testing::connected;
using ::testing::HasSubstr;
using testing::wait_until;
using Call = testing::RedisCall;
using Words = std::initializer_list<std::string_view>;

class RedisAccounts : public testing::RedisTest {
 protected:
  void set_user(const std::string& name, const std::vector<std::string>& rights) {
    std::vector<std::string> words = {"ACL", "SETUSER", name};
    words.insert(words.end(), rights.begin(), rights.end());
    ASSERT_EQ(redis_->command(words), "OK");
  }
  std::unique_ptr<redis::Client> client_of(const std::string& role) {
    set_user(role, {"on", ">secret"});
    set_user(role, testing::shipped_rights(role));
    RedisOptions options = testing::quick_options(redis_->address());
    options.user = role;
    options.password = "secret";
    return connected(options);
  }
  static void expect_allowed(redis::Client& client, Words words) {
    Call call(words);
    call.on(client);
    EXPECT_FALSE(call.is_error) << *words.begin() << ": " << call.text;
  }
  static void expect_refused(redis::Client& client, Words words) {
    Call call(words);
    call.on(client);
    EXPECT_TRUE(call.is_error) << *words.begin();
    EXPECT_THAT(call.text, ::testing::AnyOf(HasSubstr("NOPERM"), HasSubstr("no permission"),
                                            HasSubstr("can't access at least one of the keys"),
                                            HasSubstr("ACL failure in script")))
        << *words.begin();
  }
  static void expect_no_administration(redis::Client& client) {
    for (const Words words :
         {Words{"FLUSHALL"}, Words{"CONFIG", "GET", "*"}, Words{"KEYS", "*"}, Words{"ACL", "LIST"},
          Words{"SHUTDOWN"}, Words{"REPLICAOF", "NO", "ONE"}, Words{"CLIENT", "LIST"},
          Words{"SCRIPT", "FLUSH"}, Words{"PUBLISH", "a", "b"}, Words{"GET", "other:{u}"}}) {
      expect_refused(client, words);
    }
  }

  static constexpr std::string_view kLate = "4000000000000";
};

TEST_F(RedisAccounts, TheReaderReadsAndCannotWrite) {
  redis_->command({"SET", "fcap:{u}", "record"});
  const auto client = client_of("reader");
  EXPECT_EQ(Call({"GET", "fcap:{u}"}).on(*client).text, "record");
  expect_allowed(*client, {"MGET", "fcap:{u}", "fcap:{v}"});
  expect_allowed(*client, {"GET", "fcap:!config"});
  expect_allowed(*client, {"TIME"});
  const std::string script(redis::compare_and_set_script());
  for (const Words words :
       {Words{"SET", "fcap:{u}", "x"}, Words{"APPEND", "fcap:{u}", "x"}, Words{"DEL", "fcap:{u}"},
        Words{"PEXPIREAT", "fcap:{u}", kLate}, Words{"EVAL", "return 1", "0"},
        Words{"EVAL", script, "1", "fcap:{u}", "0", "", "1", kLate, "0"}}) {
    expect_refused(*client, words);
  }
  expect_no_administration(*client);
  EXPECT_EQ(redis_->command({"GET", "fcap:{u}"}), "record");
}

TEST_F(RedisAccounts, TheReserverReachesUsersAndNothingElse) {
  const auto client = client_of("reserver");
  const std::string script(redis::compare_and_set_script());
  expect_allowed(*client, {"APPEND", "fcap:{u}", "x"});
  expect_allowed(*client, {"PEXPIREAT", "fcap:{u}", kLate, "NX"});
  expect_allowed(*client, {"EVAL", script, "1", "fcap:{v}", "0", "", "1", kLate, "0"});
  expect_allowed(*client, {"EVAL", script, "1", "fcap:{v}", "1", "1", "2", kLate, "0"});
  EXPECT_EQ(redis_->command({"GET", "fcap:{v}"}), "2");
  expect_allowed(*client, {"GET", "fcap:!config"});
  for (const Words words :
       {Words{"SET", "fcap:!config", "x"}, Words{"APPEND", "fcap:!mark:{0}:a", "x"},
        Words{"GET", "fcap:!mark:{0}:a"},
        Words{"EVAL", script, "1", "fcap:!mark:{0}:a", "0", "", "1", kLate, "0"},
        Words{"EVAL", "return redis.call('SET', 'fcap:!config', 'x')", "0"},
        Words{"APPEND", "other:{u}", "x"}}) {
    expect_refused(*client, words);
  }
  expect_no_administration(*client);
}

TEST_F(RedisAccounts, TheWriterStaysWithinItsPrefix) {
  const auto client = client_of("writer");
  expect_allowed(*client, {"SET", "fcap:!config", "x"});
  expect_allowed(*client, {"APPEND", "fcap:{u}", "x"});
  expect_allowed(*client, {"SCAN", "0"});
  expect_allowed(*client, {"DBSIZE"});
  expect_allowed(*client, {"INFO"});
  expect_refused(*client, {"SET", "other", "x"});
  expect_no_administration(*client);
}

class RedisPasswordFile : public RedisAccounts {
 protected:
  void write(const std::string& password) {
    const std::string beside = file() + ".new";
    std::ofstream(beside) << password << "\n";
    std::filesystem::rename(beside, file());
  }
  std::string file() { return (directory_.path() / "password").string(); }
  RedisOptions options() {
    RedisOptions options = testing::quick_options(redis_->address());
    options.stale_reset = options.connect_timeout = 30s;
    options.user = "app";
    options.password_file = file();
    return options;
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(RedisPasswordFile, AChangedPasswordIsUsedWithoutALostRequest) {
  set_user("app", {"on", ">one", "~*", "+@all"});
  write("one");
  const auto client = connected(options());
  std::atomic<int> lost{0};
  std::atomic<bool> done{false};
  std::vector<std::jthread> callers;
  for (int i = 0; i < 2; ++i) {
    callers.emplace_back([&] {
      while (!done) {
        if (Call({"PING"}).on(*client).code != TransportCode::kOk) ++lost;
      }
    });
  }
  set_user("app", {">two", "<one"});
  write("two");
  EXPECT_TRUE(wait_until([&] { return client->health().connections >= 2; }));
  EXPECT_TRUE(client->connected());
  done = true;
  callers.clear();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(client->health().reconnects, 0U);
}

TEST_F(RedisPasswordFile, AWrongPasswordIsPutRightByTheFile) {
  set_user("app", {"on", ">right", "~*", "+@all"});
  write("wrong");
  auto client = redis::Client::create(options());
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE(wait_until([&] { return !client.value()->last_error().empty(); }));
  EXPECT_THAT(client.value()->last_error(), HasSubstr("WRONGPASS"));
  write("right");
  EXPECT_TRUE(wait_until([&] { return client.value()->connected(); }));
}

TEST_F(RedisPasswordFile, AMissingOrEmptyFileIsNamed) {
  const auto missing = redis::Client::create(options());
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().text(),
              HasSubstr("password_file: cannot read " + file() + ": No such file"));
  write("");
  const auto empty = redis::Client::create(options());
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.status().text(), HasSubstr("holds no password"));
}

}  // namespace accounts_redis_test
}  // namespace fcap
