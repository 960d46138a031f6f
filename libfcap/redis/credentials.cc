#include "redis/credentials.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace fcap::redis {
namespace {

constexpr std::chrono::milliseconds kFilesEvery{5'000};
constexpr std::size_t kPasswordBytesMax = 65'536;

// Of the option of that name, whose file this is.
Result<std::string> read_password(const std::string& option, const std::string& path) {
  const auto unusable = [&option, &path](const std::string& why) {
    return Status::error(StatusCode::kInvalidArgument,
                         "redis " + option + ": \"" + path + "\": " + why);
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return unusable(std::generic_category().message(errno));
  std::string password((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (password.ends_with('\n') || password.ends_with('\r')) password.pop_back();
  if (password.empty()) return unusable("holds no password");
  if (password.size() > kPasswordBytesMax) return unusable("is longer than a password may be");
  return password;
}

}  // namespace

Status Credentials::start(const RedisOptions& options, OnLook on_look) {
  options_ = &options;
  on_look_ = std::move(on_look);
  const RedisTls& tls = options.tls;
  for (const std::string& path :
       {options.password_file, options.sentinel_password_file, tls.ca_file, tls.ca_directory,
        tls.certificate_file, tls.key_file}) {
    if (!path.empty()) files_.push_back(path);
  }
  stamps_ = stamps();
  if (Status made = read(current_); !made.ok()) return made;
  if (files_.empty()) return {};
  return thread_.start(
      "fcap-files", [this] { run(); }, options.thread_started);
}

Status Credentials::read(Current& current) const {
  current.password = options_->password;
  if (!options_->password_file.empty()) {
    auto password = read_password("password_file", options_->password_file);
    if (!password.ok()) return password.status();
    current.password = std::move(password).value();
  }
  current.sentinel_password = options_->sentinel_password;
  if (!options_->sentinel_password_file.empty()) {
    auto password = read_password("sentinel_password_file", options_->sentinel_password_file);
    if (!password.ok()) return password.status();
    current.sentinel_password = std::move(password).value();
  }
  if (!options_->tls.enabled) return {};
  auto context = tls::Context::create(options_->tls);
  if (!context.ok()) return context.status();
  current.tls = std::move(context).value();
  return {};
}

std::vector<base::FileStamp> Credentials::stamps() const {
  std::vector<base::FileStamp> all;
  all.reserve(files_.size());
  for (const std::string& path : files_) all.push_back(base::stamp_of(path));
  return all;
}

void Credentials::run() {
  const base::LoopEvents events = thread_.events();
  for (;;) {
    std::array<pollfd, 2> polled{pollfd{events.stop, POLLIN, 0}, pollfd{events.wake, POLLIN, 0}};
    ::poll(polled.data(), polled.size(), static_cast<int>(kFilesEvery.count()));
    if (polled[0].revents != 0) return;
    if (polled[1].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(events.wake, &count, sizeof(count));
    }
    look();
  }
}

// A file may be replaced after its neighbour, or be half written: what cannot be used is looked at
// again each time.
void Credentials::look() {
  std::vector<base::FileStamp> found = stamps();
  if (found == stamps_) return;
  Current next;
  if (const Status made = read(next); !made.ok()) return on_look_(made.text());
  stamps_ = std::move(found);
  {
    const std::lock_guard lock(mutex_);
    const bool same = !next.tls && next.password == current_.password;
    current_ = std::move(next);
    if (same) return;
  }
  generation_.fetch_add(1, std::memory_order_release);
  on_look_({});
}

}  // namespace fcap::redis
