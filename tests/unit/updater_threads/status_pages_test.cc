// What the daemon serves over HTTP.
#include "updater/commands/status_pages.h"

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/updater/support/fault_store.h"
#include "updater/pipeline/config_publisher.h"

namespace fcap::updater {
namespace status_pages_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ask(std::uint16_t port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size())) {
    char bytes[4096];
    ssize_t got = 0;
    while ((got = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
      answer.append(bytes, static_cast<std::size_t>(got));
    }
  }
  close(fd);
  return answer;
}

TEST(Http, PagesOtherPathsAndOtherMethods) {
  auto server = HttpServer::start({}, [](const std::string& path, HttpAnswer& answer) {
    if (path != "/page") return false;
    answer = {.status = 503, .body = "not yet\n"};
    return true;
  });
  ASSERT_TRUE(server.ok()) << server.status().text();
  const std::uint16_t port = server.value()->port();
  const auto get = [&](const std::string& method, const std::string& path) {
    return ask(port, method + " " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  };
  EXPECT_THAT(get("GET", "/page"), ::testing::StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(get("GET", "/page"), ::testing::EndsWith("\r\n\r\nnot yet\n"));
  EXPECT_THAT(get("GET", "/page?x=1"), HasSubstr("not yet"));
  EXPECT_THAT(get("HEAD", "/page"), ::testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(get("GET", "/"), ::testing::StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get("GET", "/../../etc/passwd"), Not(HasSubstr("root")));
  EXPECT_THAT(get("POST", "/page"), ::testing::StartsWith("HTTP/1.1 405 "));
}

// What /readyz says of this updater, through HTTP. `ready` becomes its status.
class ReadyPage : public ::testing::Test {
 protected:
  ReadyPage() {
    health_.add_check([this](Health::Clock::time_point) { return publisher_.trouble(); });
    health_.beat(Health::Clock::now());
    health_.set_assigned(true);
    auto server = HttpServer::start({}, StatusPages(health_, metrics_page_, {}));
    EXPECT_TRUE(server.ok()) << server.status().text();
    if (server.ok()) server_ = std::move(server).value();
  }
  std::string page() {
    return server_ == nullptr ? ""
                              : ask(server_->port(), "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  // These partitions have an owner that has compared their marks by now.
  void compare(std::initializer_list<std::int32_t> partitions) {
    OpenGaps gaps;
    for (const std::int32_t number : partitions) {
      marks_.compared[number] = now_;
      gaps.missing_before[number] = std::nullopt;
    }
    publisher_.set_open_gaps(std::move(gaps));
    publisher_.set_marks(marks_);
    for (int i = 0; i < 10; ++i) {
      publisher_.tick(now_, instant_from_ms(1'700'000'000'000));
      now_ += 500ms;
    }
  }
  static redis::ConfigRecord record() {
    redis::ConfigRecord record;
    record.key_prefix = "fcap";
    record.retention = std::chrono::days{32};
    return record;
  }

  testing::FaultStore store_;
  MarkNews marks_{.partitions = 4};
  Metrics metrics_;
  MetricsExposition metrics_page_{metrics_, {}};
  Health health_{std::chrono::hours{1}};
  ConfigPublisher publisher_{store_, record(), {"g", "t"}, {}};
  Health::Clock::time_point now_ = Health::Clock::now();
  std::unique_ptr<HttpServer> server_;
};

TEST_F(ReadyPage, NamesThePartitionsThatNobodyHasComparedSinceRedisWasEmptied) {
  compare({});  // of a Redis that has nothing
  compare({0, 2});
  std::string said = page();
  EXPECT_THAT(said, ::testing::StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(said, ::testing::EndsWith("\r\n\r\nRedis has lost data, and the marks of t, "
                                        "partitions 1, 3, have not been compared since: no count "
                                        "of the users concerned is complete, and their hard calls "
                                        "are refused\n"));
  // One that has no leader is among them for as long.
  health_.set_problem(Health::Problem::kMarks,
                      "partition 3: cannot find where to begin: it has no leader");
  compare({0, 1, 2});
  said = page();
  EXPECT_THAT(said, ::testing::StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(said, HasSubstr("\npartition 3: cannot find where to begin: it has no leader\n"));
  EXPECT_THAT(said, HasSubstr("partitions 3, have not been compared"));
  health_.set_problem(Health::Problem::kMarks, "");
  compare({0, 1, 2, 3});
  said = page();
  EXPECT_THAT(said, ::testing::StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(said, ::testing::EndsWith("\r\n\r\nready\n"));
}

TEST(Http, ABusyPortIsNamed) {
  const auto pages = [](const std::string&, HttpAnswer&) { return false; };
  auto first = HttpServer::start({}, pages);
  ASSERT_TRUE(first.ok());
  const auto second = HttpServer::start({.port = first.value()->port()}, pages);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().text(), HasSubstr("http.port"));
  EXPECT_THAT(second.status().text(), HasSubstr("in use"));
}

}  // namespace status_pages_test
}  // namespace fcap::updater
