// What is said of a PostgreSQL that cannot be connected to.
#include <array>
#include <chrono>
#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libintl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "postgres/pg_connection.h"
#include "support/temporary_directory.h"

namespace fcap::postgres {
namespace connection_advice_test {

using namespace std::string_literals;  // NOLINT: zeros stand in them
using ::testing::HasSubstr;

// A port of this host where each client gets one answer to what it says first. Empty: nobody
// listens there.
class Port {
 public:
  explicit Port(std::string answer)
      : answer_(std::move(answer)), fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    socklen_t length = sizeof at;
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &length), 0);
    number_ = ntohs(at.sin_port);
    if (answer_.empty()) return;
    EXPECT_EQ(::listen(fd_, 8), 0);
    thread_ = std::thread([this] { serve(); });
  }
  ~Port() {
    ::shutdown(fd_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(fd_);
  }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // Why it cannot be connected to.
  [[nodiscard]] std::string failure(const std::string& sslmode = "require") const {
    const auto made = PgConnection::connect(
        "host=127.0.0.1 dbname=fcap user=fcap sslmode=" + sslmode +
            " port=" + std::to_string(number_),
        {.deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30}});
    EXPECT_EQ(made.status().code(), StatusCode::kUnavailable);
    return made.status().text();
  }

 private:
  void serve() const {
    for (int client = 0; (client = ::accept(fd_, nullptr, nullptr)) >= 0; ::close(client)) {
      std::array<char, 64> request{};
      if (::recv(client, request.data(), request.size(), 0) > 0) {
        (void)::send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      }
    }
  }

  const std::string answer_;
  const int fd_;
  std::uint16_t number_ = 0;
  std::thread thread_;
};

// To a client that asks for TLS.
const std::string kThereIsNone = "N";

constexpr const char* kNoTls = "server does not support SSL, but SSL was required\n";
constexpr const char* kTranslated = "les serveurs sont fatigués\n";

std::string little_endian(std::uint32_t number) {
  std::string bytes;
  for (int i = 0; i < 4; ++i, number >>= 8U) bytes += static_cast<char>(number & 0xFFU);
  return bytes;
}

// A catalog of gettext's with one message, after what it says of itself.
std::string catalog() {
  const std::string header = "Content-Type: text/plain; charset=UTF-8\n";
  const std::array<std::string, 4> texts = {"", kNoTls, header, kTranslated};
  constexpr std::uint32_t kTexts = 28 + 4 * 8;  // behind the head and both tables
  std::string bytes = little_endian(0x950412DE);
  for (const std::uint32_t number : {0U, 2U, 28U, 28U + 16U, 0U, kTexts}) {
    bytes += little_endian(number);
  }
  std::string all;
  for (const std::string& text : texts) {
    bytes += little_endian(static_cast<std::uint32_t>(text.size()));
    bytes += little_endian(kTexts + static_cast<std::uint32_t>(all.size()));
    all += text + '\0';
  }
  return bytes + all;
}

// A host that has chosen another language than English. libpq looks for its catalog once.
class Translated : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path folder = directory_.file("xx/LC_MESSAGES");
    std::filesystem::create_directories(folder);
    for (int version = 13; version < 30; ++version) {
      std::ofstream(folder / ("libpq5-" + std::to_string(version) + ".mo"), std::ios::binary)
          << catalog();
    }
    ::setenv("PGLOCALEDIR", directory_.path().c_str(), 1);
    ::setenv("LANGUAGE", "xx", 1);
    if (std::setlocale(LC_ALL, "C.UTF-8") == nullptr) GTEST_SKIP() << "there is no C.UTF-8";
    ::bindtextdomain("libpq5-13", directory_.path().c_str());
    if (std::string_view(::dgettext("libpq5-13", kNoTls)) != kTranslated) {
      GTEST_SKIP() << "this system translates nothing";
    }
  }
  void TearDown() override {
    std::setlocale(LC_ALL, "C");
    ::unsetenv("LANGUAGE");
    ::unsetenv("PGLOCALEDIR");
  }

  TemporaryDirectory directory_;
};

TEST(ConnectionAdvice, OfAServerWithoutTlsIsToSwitchItOn) {
  EXPECT_THAT(Port(kThereIsNone).failure(), HasSubstr("switch TLS on at the server"));
}

TEST(ConnectionAdvice, OfAServerThatIsNotThereThereIsNone) {
  EXPECT_THAT(Port({}).failure(), ::testing::EndsWith("Connection refused; Is the server "
                                                      "running on that host and accepting "
                                                      "TCP/IP connections?"));
}

TEST(ConnectionAdvice, WhatAServerSaysIsOneLineWithoutControlCharacters) {
  const std::string fields = "SFATAL\0C28000\0Mno \x1b[31mred\tand\nmore\0\0"s;
  const auto length = static_cast<char>(4 + fields.size());
  const std::string said = Port("E" + std::string(3, '\0') + length + fields).failure("disable");
  EXPECT_THAT(said, HasSubstr("no \\x1b[31mred and; more"));
  EXPECT_EQ(said.find_first_of("\x1b\t\n"), std::string::npos) << said;
}

TEST_F(Translated, AdviceIsFoundInWhateverLanguageTheHostHasChosen) {
  EXPECT_THAT(Port(kThereIsNone).failure(), HasSubstr("switch TLS on at the server"));
  EXPECT_EQ(std::string_view(::dgettext("libpq5-13", kNoTls)), kTranslated)
      << "the host's own texts are in its language";
}

}  // namespace connection_advice_test
}  // namespace fcap::postgres
