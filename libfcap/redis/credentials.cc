#include "redis/credentials.h"

#include <array>
#include <chrono>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "redis/password_file.h"

namespace fcap::redis {
namespace {

constexpr std::chrono::milliseconds kFilesEvery{5'000};

// The file's password if a file is named, otherwise `given`. kInvalidArgument where the file cannot
// be used: for the host, the option that names it is wrong.
Status choose_password(const std::string& option, const std::string& path, const std::string& given,
                       std::string& chosen) {
  chosen = given;
  if (path.empty()) return {};
  auto password = read_password("redis " + option, path);
  if (!password.ok()) {
    return Status::error(StatusCode::kInvalidArgument, password.status().text());
  }
  chosen = std::move(password).value();
  return {};
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
  const RedisOptions& options = *options_;
  if (Status status = choose_password("password_file", options.password_file, options.password,
                                      current.password);
      !status.ok()) {
    return status;
  }
  if (Status status = choose_password("sentinel_password_file", options.sentinel_password_file,
                                      options.sentinel_password, current.sentinel_password);
      !status.ok()) {
    return status;
  }
  if (!options.tls.enabled) return {};
  auto context = tls::Context::create(options.tls);
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
