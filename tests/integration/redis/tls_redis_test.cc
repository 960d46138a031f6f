// TLS towards a real Redis, with certificates that the test makes: what works, and what each
// mistake is called.
#include "support/tls_redis.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <semaphore>
#include <thread>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include "support/redis_clients.h"
#include "support/tcp_proxy.h"
#include "tests/support/thread_state.h"

namespace {

std::atomic<int> streams{0};

}  // namespace

// In place of OpenSSL's, for all of this program: they count.
extern "C" SSL* SSL_new(SSL_CTX* context) {
  ++streams;
  static auto* const real = reinterpret_cast<decltype(::SSL_new)*>(::dlsym(RTLD_NEXT, "SSL_new"));
  return real(context);
}
extern "C" void SSL_free(SSL* ssl) {
  if (ssl != nullptr) --streams;
  static auto* const real = reinterpret_cast<decltype(::SSL_free)*>(::dlsym(RTLD_NEXT, "SSL_free"));
  real(ssl);
}

namespace fcap {
namespace tls_redis_test {

using namespace std::chrono_literals;
using redis::TransportCode;
using ::testing::AllOf;
using testing::Certificate;
using testing::Certificates;
using testing::connected;
using ::testing::HasSubstr;
using testing::RedisServer;
using testing::wait_until;
using Call = testing::RedisCall;

class RedisTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available() || !Certificates::available()) {
      GTEST_SKIP() << "redis-server, redis-cli or openssl is missing";
    }
    authority_.emplace("fcap test authority");
    redis_.emplace(authority_->ca_file(),
                   authority_->issue("server", "DNS:localhost,IP:127.0.0.1"));
  }

  [[nodiscard]] RedisOptions options(const std::string& host = "127.0.0.1") const {
    RedisOptions options = testing::quick_options(redis_->address(host));
    options.connect_timeout = 30s;
    options.stale_reset = 30s;
    options.tls.enabled = true;
    options.tls.ca_file = authority_->ca_file();
    return options;
  }

  // What a client says that cannot connect.
  static std::string refusal(const RedisOptions& options) {
    auto client = redis::Client::create(options);
    if (!client.ok()) return "not made: " + client.status().text();
    EXPECT_TRUE(wait_until([&] { return !client.value()->last_error().empty(); }));
    EXPECT_FALSE(client.value()->connected());
    return client.value()->last_error();
  }

  static std::uint64_t count(const redis::Client& client, const std::string& name) {
    for (const auto& [key, value] : client.health().more) {
      if (key == name) return std::stoull(value);
    }
    return 0;
  }

  std::optional<Certificates> authority_;
  std::optional<testing::TlsRedis> redis_;
};

TEST_F(RedisTlsTest, CommandsAndRepliesOfAllSizes) {
  const auto client = connected(options());
  for (const std::size_t size : {0U, 1U, 100U, 16'384U, 16'385U, 900'000U}) {
    const std::string value(size, 'v');
    EXPECT_EQ(Call({"SET", "k", value}).on(*client).text, "OK") << size;
    EXPECT_EQ(Call({"GET", "k"}).on(*client).text, value) << size;
  }
  EXPECT_EQ(count(*client, "tls_handshakes"), 1U);
}

TEST_F(RedisTlsTest, ManyRequestsAtATimeComeBackInOrder) {
  const auto client = connected(options());
  std::vector<std::jthread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      const std::string key = "k" + std::to_string(caller);
      for (int i = 0; i < 200; ++i) {
        const std::string value(static_cast<std::size_t>(1 + i * 97),
                                static_cast<char>('a' + caller));
        if (Call({"SET", key, value}).on(*client).text != "OK") ++wrong;
        if (Call({"GET", key}).on(*client).text != value) ++wrong;
      }
    });
  }
  callers.clear();
  EXPECT_EQ(wrong, 0);
}

// Keeps the I/O thread in its callback.
class HoldingCall final : public redis::Request {
 public:
  HoldingCall() {
    redis::append_command(wire, {"PING"});
    deadline = std::chrono::steady_clock::now() + 30s;
  }
  void on_reply(std::uint32_t /*index*/, const redis::Reply& /*reply*/) noexcept override {}
  void on_done(redis::TransportCode /*code*/) noexcept override {
    begun.release();
    go_on.acquire();
  }
  std::binary_semaphore begun{0};
  std::binary_semaphore go_on{0};
};

TEST_F(RedisTlsTest, NothingStaysOfADirectConnectionThatComesBackAtTheEnd) {
  struct Ignored final : StoreCompletion {
    void complete(const StoreOutcome& /*outcome*/) noexcept override {}
  } done;
  redis_->server().command({"LPUSH", "k", "an error is for the I/O thread to tell"});
  const int before = streams;
  auto client = connected(options());
  const auto read = [&] { return client->read("k", std::chrono::steady_clock::now() + 30s, done); };
  EXPECT_TRUE(wait_until([&] { return read(); }));
  EXPECT_EQ(Call({"PING"}).on(*client).text, "PONG");  // and it is idle again
  HoldingCall held;
  client->submit(held);
  held.begun.acquire();
  EXPECT_TRUE(read());
  std::jthread releasing([&, destroying = ::gettid()] {
    EXPECT_TRUE(falls_asleep(destroying));
    held.go_on.release();
  });
  client.reset();
  EXPECT_EQ(streams, before);
}

TEST_F(RedisTlsTest, NamesAndAddressesAreVerified) {
  EXPECT_TRUE(testing::answers(*connected(options("localhost"))));
  redis_->present(authority_->issue("elsewhere", "DNS:redis.example,IP:10.1.2.3"));
  EXPECT_THAT(refusal(options("localhost")),
              AllOf(HasSubstr("the server's certificate is not for \"localhost\" but for "
                              "redis.example, 10.1.2.3"),
                    HasSubstr("option tls.server_name")));
  EXPECT_THAT(refusal(options()), HasSubstr("is not for \"127.0.0.1\""));
  RedisOptions named = options();
  named.tls.server_name = "redis.example";
  EXPECT_TRUE(testing::answers(*connected(named)));
  RedisOptions careless = options();
  careless.tls.verify = false;
  EXPECT_TRUE(testing::answers(*connected(careless)));
}

TEST_F(RedisTlsTest, AnExpiredCertificateIsRefused) {
  redis_->present(authority_->issue_expired("expired", "DNS:localhost,IP:127.0.0.1"));
  EXPECT_THAT(refusal(options()),
              AllOf(HasSubstr("the server's certificate"), HasSubstr("expired at 2021-01-01")));
}

TEST_F(RedisTlsTest, AnUnknownAuthorityIsRefused) {
  const Certificates other("another authority");
  RedisOptions strange = options();
  strange.tls.ca_file = other.ca_file();
  EXPECT_THAT(refusal(strange),
              AllOf(HasSubstr("an authority that is not trusted here"), HasSubstr("tls.ca_file")));
  RedisOptions system = options();
  system.tls.ca_file.clear();
  EXPECT_THAT(refusal(system), HasSubstr("an authority that is not trusted here"));
}

TEST_F(RedisTlsTest, PlainTextOnATlsPortIsNamed) {
  RedisOptions plain = options();
  plain.tls = {};
  EXPECT_THAT(refusal(plain), HasSubstr("option tls.enabled"));
}

TEST_F(RedisTlsTest, TlsOnAPlainPortIsNamed) {
  RedisOptions options = this->options();
  options.addresses = {redis_->server().address()};
  options.connect_timeout = 3s;
  EXPECT_THAT(refusal(options),
              AllOf(HasSubstr("not speak TLS on this port"), HasSubstr("option tls.enabled")));
}

TEST_F(RedisTlsTest, AClientCertificateIsPresentedWhereOneIsRequired) {
  redis_->require_client_certificates(true);
  EXPECT_THAT(refusal(options()), HasSubstr("tls.certificate_file"));
  const Certificate mine = authority_->issue("client", "DNS:client");
  RedisOptions known = options();
  known.tls.certificate_file = mine.certificate_file;
  known.tls.key_file = mine.key_file;
  EXPECT_TRUE(testing::answers(*connected(known)));
  const Certificates other("another authority");
  const Certificate strange = other.issue("client", "DNS:client");
  RedisOptions foreign = options();
  foreign.tls.certificate_file = strange.certificate_file;
  foreign.tls.key_file = strange.key_file;
  EXPECT_THAT(refusal(foreign), HasSubstr("tls.certificate_file"));
}

TEST_F(RedisTlsTest, AFileThatCannotBeUsedIsRefusedAtOnce) {
  RedisOptions missing = options();
  missing.tls.ca_file = "/nowhere/ca.pem";
  EXPECT_THAT(refusal(missing), AllOf(HasSubstr("not made: redis tls.ca_file: \"/nowhere/ca.pem\""),
                                      HasSubstr("No such file")));
  const Certificate mine = authority_->issue("client", "DNS:client");
  const Certificate another = authority_->issue("another", "DNS:client");
  RedisOptions mixed = options();
  mixed.tls.certificate_file = mine.certificate_file;
  mixed.tls.key_file = another.key_file;
  EXPECT_THAT(refusal(mixed), AllOf(HasSubstr("redis tls.key_file"), HasSubstr("mismatch")));
}

TEST_F(RedisTlsTest, AConnectionThatIsMadeAgainResumesItsSession) {
  const auto client = connected(options());
  for (std::uint64_t round = 1; round <= 5; ++round) {
    ASSERT_TRUE(testing::answers(*client)) << "the session comes with or before the first reply";
    redis_->server().command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    ASSERT_TRUE(wait_until([&] { return count(*client, "tls_handshakes") == round + 1; }));
    ASSERT_TRUE(wait_until([&] { return client->connected(); }));
    EXPECT_EQ(count(*client, "tls_resumed"), round);
  }
}

TEST_F(RedisTlsTest, ThreadsOfOneClientShareTheirSessions) {
  RedisOptions four = options();
  four.io_threads = 4;
  const auto client = connected(four);
  const std::uint64_t before = count(*client, "tls_resumed");
  redis_->server().command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  ASSERT_TRUE(wait_until([&] { return count(*client, "tls_handshakes") == 8; }));
  ASSERT_TRUE(wait_until([&] { return client->connected(); }));
  EXPECT_EQ(count(*client, "tls_resumed"), before + 4) << before;
}

TEST_F(RedisTlsTest, SOAK_AThousandClientsComeBackWithTheirSessions) {
  const auto clients = testing::clients_of_a_storm(testing::kClientsOfAStorm, options());
  for (const auto& client : clients) {
    ASSERT_TRUE(wait_until([&] { return client->connected(); })) << client->last_error();
  }
  redis_->server().command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_EQ(redis_->server().command({"PING"}), "PONG");
  for (const auto& client : clients) {
    ASSERT_TRUE(wait_until([&] { return count(*client, "tls_handshakes") >= 2; }));
    ASSERT_TRUE(wait_until([&] { return client->connected(); })) << client->last_error();
    EXPECT_EQ(count(*client, "tls_resumed"), count(*client, "tls_handshakes") - 1);
  }
  EXPECT_TRUE(testing::answers(*clients.front()));
}

TEST_F(RedisTlsTest, AServerThatGoesAwayIsALostConnectionAndNoSignal) {
  testing::TcpProxy proxy(redis_->port());
  RedisOptions through = options();
  through.addresses = {"127.0.0.1:" + std::to_string(proxy.port())};
  const auto client = connected(through);
  proxy.refuse(true);
  proxy.cut();
  EXPECT_TRUE(wait_until([&] { return Call({"PING"}).on(*client).code != TransportCode::kOk; }));
  proxy.refuse(false);
  EXPECT_TRUE(wait_until([&] { return testing::answers(*client); }));
}

TEST_F(RedisTlsTest, AReplacedAuthorityIsUsedWithoutALostRequest) {
  const Certificates next("the next authority");
  const auto copy = [](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(from, to + ".new");
    std::filesystem::rename(to + ".new", to);
  };
  const std::string trusted = (authority_->directory() / "trusted.pem").string();
  copy(authority_->ca_file(), trusted);
  RedisOptions options = this->options();
  options.tls.ca_file = trusted;
  const auto client = connected(options);
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
  redis_->present(next.issue("server", "DNS:localhost,IP:127.0.0.1"));
  copy(next.ca_file(), trusted);
  EXPECT_TRUE(wait_until([&] { return client->health().connections >= 2; }));
  EXPECT_TRUE(client->connected());
  done = true;
  callers.clear();
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(client->health().reconnects, 0U);
}

TEST_F(RedisTlsTest, TheCallersErrorQueueAndErrnoStay) {
  ERR_new();
  ERR_set_debug("host.cc", 12, "host");
  ERR_set_error(ERR_LIB_USER, 77, "%s", "the host's own");
  errno = EDOM;
  auto client = redis::Client::create(options());
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(errno, EDOM);
  EXPECT_TRUE(wait_until([&] { return client.value()->connected(); }));
  RedisOptions wrong = options();
  wrong.tls.ca_file = "/nowhere";
  EXPECT_FALSE(redis::Client::create(wrong).ok());
  client.value().reset();
  EXPECT_EQ(ERR_GET_REASON(ERR_get_error()), 77) << "the host's own error";
  EXPECT_EQ(ERR_get_error(), 0U) << "and none of fcap's";
}

}  // namespace tls_redis_test
}  // namespace fcap
