// What a store says of a server that is too old, or does not answer as Redis does.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "redis/config_record.h"
#include "redis/direct_reads.h"
#include "redis/redis_store.h"
#include "tests/support/scripted_server.h"

namespace fcap::redis {
namespace server_answers_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the code
using Words = ScriptedServer::Words;

class Outcome final : public StoreCompletion {
 public:
  void complete(const StoreOutcome& outcome) noexcept override {
    const std::lock_guard lock(mutex_);
    text_ = outcome.text;
    length_bytes_ = outcome.length_bytes;
    code_ = outcome.code;
    came_.notify_all();
  }
  StoreCode code() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(came_.wait_for(lock, 30s, [this] { return code_.has_value(); }));
    return code_.value_or(StoreCode::kOk);
  }
  std::string text() {
    static_cast<void>(code());
    return text_;
  }
  std::size_t length_bytes() {
    static_cast<void>(code());
    return length_bytes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::optional<StoreCode> code_;
  std::string text_;
  std::size_t length_bytes_ = 0;
};

std::string hello(const std::string& server, const std::string& version) {
  return resp_list({resp_text("server"), resp_text(server), resp_text("version"),
                    resp_text(version), resp_text("proto"), ":2\r\n"});
}

class ServerAnswers : public ::testing::Test {
 protected:
  ~ServerAnswers() override { base::wall_clock_ahead_ms = 0; }

  // Serves what `says` says, and otherwise as a master without data does.
  void serve(std::function<std::optional<std::string>(const Words&)> says,
             std::size_t direct_connections = 0) {
    server_.emplace(
        [says = std::move(says)](std::size_t, const Words& words) -> std::optional<std::string> {
          const auto said = says(words);
          return said ? said : as_single_master(words);
        });
    RedisOptions options;
    options.addresses = {server_->address()};
    options.direct_connections = direct_connections;
    options.log = [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(text);
    };
    auto made = make_redis_store(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().text();
    store_ = std::move(made).value();
  }
  bool connects() {
    return eventually([this] { return store_->health().connected; });
  }
  // On a direct connection, if there are any, as a check does.
  void read(const std::string& key, bool is_direct, Outcome& outcome) {
    auto* const direct = dynamic_cast<DirectReads*>(store_.get());
    ASSERT_NE(direct, nullptr);
    if (is_direct) {
      EXPECT_TRUE(eventually([&] {
        Outcome warm;
        return direct->read("warm", later(), warm);
      }));
      if (direct->read(key, later(), outcome)) return;
    }
    store_->get(key, later(), outcome);
  }
  // Whether the log has a line with this text.
  bool logs(const std::string& text) {
    return eventually([&] {
      const std::lock_guard lock(mutex_);
      return std::ranges::any_of(
          lines_, [&](const std::string& line) { return line.find(text) != std::string::npos; });
    });
  }
  bool is_logged(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        lines_, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }
  [[nodiscard]] bool last_error_has(const std::string& text) const {
    return store_->health().last_error.find(text) != std::string::npos;
  }
  static Store::Deadline later() { return std::chrono::steady_clock::now() + 30s; }

  std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
  std::optional<ScriptedServer> server_;
  std::unique_ptr<Store> store_;
};

bool has_control(const std::string& text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

// --- Versions.

TEST_F(ServerAnswers, ARedisBelow7IsRefusedByName) {
  serve([](const Words& words) -> std::optional<std::string> {
    if (words[0] != "HELLO") return std::nullopt;
    return hello("redis", "6.2.14");
  });
  EXPECT_TRUE(eventually([&] { return last_error_has("this is Redis 6.2.14"); }))
      << store_->health().last_error;
  EXPECT_TRUE(last_error_has("7.0"));
  EXPECT_FALSE(store_->health().connected);
}

// Since 7.0, every account may say HELLO, also one that is denied it.
TEST_F(ServerAnswers, ARedisWhoseAccountMayNotSayHelloIsBefore7) {
  serve([](const Words& words) -> std::optional<std::string> {
    if (words[0] != "HELLO") return std::nullopt;
    return "-NOPERM this user has no permissions to run the 'hello' command or its subcommand\r\n";
  });
  EXPECT_TRUE(eventually([&] { return last_error_has("this is Redis before 7.0"); }))
      << store_->health().last_error;
  EXPECT_FALSE(store_->health().connected);
}

// --- Answers of the wrong kind.

TEST_F(ServerAnswers, AReadThatIsAnsweredByAnotherKindIsSaidAndCounts) {
  for (const std::size_t direct_connections : {0U, 2U}) {
    for (const char* const answer : {":1\r\n", "+OK\r\n", "*0\r\n", "*1\r\n$1\r\nx\r\n"}) {
      serve(
          [answer](const Words& words) -> std::optional<std::string> {
            const bool is_read = words[0] == "GET" && words[1] != "warm";
            return is_read ? std::optional<std::string>(answer) : std::nullopt;
          },
          direct_connections);
      ASSERT_TRUE(connects());
      Outcome outcome;
      read("fcap:{u}", direct_connections != 0, outcome);
      EXPECT_EQ(outcome.code(), StoreCode::kUnavailable);
      EXPECT_TRUE(eventually([&] { return last_error_has("that nothing asked for"); }))
          << store_->health().last_error;
      EXPECT_TRUE(eventually([&] { return store_->health().failures >= 1; }))
          << "the breaker counts them";
      EXPECT_TRUE(logs("that nothing asked for"));
      store_.reset();
    }
  }
}

TEST_F(ServerAnswers, AWriteThatIsAnsweredByAnotherKindMayHaveHappened) {
  serve([](const Words& words) -> std::optional<std::string> {
    return words[0] == "APPEND" || words[0] == "SET" ? std::optional<std::string>("$1\r\nx\r\n")
                                                     : std::nullopt;
  });
  ASSERT_TRUE(connects());
  Outcome appended;
  store_->append("fcap:{u}", "x", Instant::max(), later(), appended);
  EXPECT_EQ(appended.code(), StoreCode::kUnavailable);
  ASSERT_TRUE(connects());
  Outcome noted;
  store_->append_note("fcap:{u}", "x", Instant::max(), later(), noted);
  EXPECT_EQ(noted.code(), StoreCode::kUnavailable);
  ASSERT_TRUE(connects());
  Outcome exchanged;
  store_->compare_and_set({.key = "fcap:{u}", .desired = "x"}, later(), exchanged);
  EXPECT_EQ(exchanged.code(), StoreCode::kUnavailable);
  EXPECT_TRUE(eventually([&] { return last_error_has("that nothing asked for"); }))
      << store_->health().last_error;
}

// --- What a server says.

TEST_F(ServerAnswers, ControlCharactersOfAServersErrorsStayOut) {
  serve([](const Words& words) -> std::optional<std::string> {
    if (words[0] != "GET") return std::nullopt;
    static constexpr char kError[] = "-ERR \x1b[31mred\nanother line\x7f\0of bytes\r\n";
    return std::string(kError, sizeof kError - 1);
  });
  ASSERT_TRUE(connects());
  Outcome outcome;
  store_->get("fcap:{u}", later(), outcome);
  EXPECT_EQ(outcome.code(), StoreCode::kServerError);
  ASSERT_TRUE(logs("red"));
  EXPECT_TRUE(eventually([&] { return last_error_has("red"); }));
  EXPECT_FALSE(has_control(store_->health().last_error)) << store_->health().last_error;
  const std::lock_guard lock(mutex_);
  for (const std::string& line : lines_) EXPECT_FALSE(has_control(line)) << line;
}

TEST_F(ServerAnswers, ARefusedCommandsArgumentsStayOut) {
  for (const std::size_t direct_connections : {0U, 2U}) {
    serve(
        [](const Words& words) -> std::optional<std::string> {
          if (words[0] != "GET" || words[1] == "warm") return std::nullopt;
          return "-ERR unknown command 'GET', with args beginning with: '" + words[1] + "' \r\n";
        },
        direct_connections);
    ASSERT_TRUE(connects());
    Outcome outcome;
    read("fcap:{somebody}", direct_connections != 0, outcome);
    EXPECT_EQ(outcome.code(), StoreCode::kServerError);
    EXPECT_EQ(outcome.text(), "ERR unknown command 'GET'");
    EXPECT_TRUE(logs("unknown command 'GET'"));
    EXPECT_FALSE(is_logged("somebody"));
    EXPECT_FALSE(last_error_has("somebody"));
    store_.reset();
  }
}

TEST_F(ServerAnswers, AnAppendWhoseExpiryIsRefusedSaysThatTheBytesAreThere) {
  serve([](const Words& words) -> std::optional<std::string> {
    if (words[0] == "APPEND") return ":7\r\n";
    if (words[0] == "PEXPIREAT") return "-ERR wrong number of arguments\r\n";
    return std::nullopt;
  });
  ASSERT_TRUE(connects());
  Outcome outcome;
  store_->append_note("fcap:{u}", "x", Instant::max(), later(), outcome);
  EXPECT_EQ(outcome.code(), StoreCode::kServerError);
  EXPECT_EQ(outcome.length_bytes(), 7U);
}

// --- The clock.

TEST_F(ServerAnswers, HealthShowsTheClocksAsHardCallsSeeThem) {
  serve([](const Words&) -> std::optional<std::string> { return std::nullopt; });
  ASSERT_TRUE(eventually([&] { return store_->write_terms().clock_difference.has_value(); }));
  base::wall_clock_ahead_ms = std::chrono::milliseconds{1h}.count();
  const auto shown = store_->health().clock_difference;
  const auto judged_by = store_->write_terms().clock_difference;
  ASSERT_TRUE(shown && judged_by);
  EXPECT_LT(std::chrono::abs(*shown - *judged_by), 30min);
}

TEST_F(ServerAnswers, AnAccountWithoutTimeIsSaid) {
  serve([](const Words& words) -> std::optional<std::string> {
    if (words[0] != "TIME") return std::nullopt;
    return "-NOPERM this user has no permissions to run the 'time' command\r\n";
  });
  ASSERT_TRUE(connects());
  EXPECT_TRUE(logs("NOPERM this user has no permissions to run the 'time' command"));
  EXPECT_TRUE(is_logged("+time"));
  EXPECT_NE(store_->health().clock_text.find("+time"), std::string::npos);
}

}  // namespace server_answers_test
}  // namespace fcap::redis
