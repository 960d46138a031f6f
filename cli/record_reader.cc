#include "cli/record_reader.h"

#include <condition_variable>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "cli/blocking_get.h"
#include "cli/instants.h"
#include "cli/redis_target.h"
#include "ledger/user_key.h"
#include "redis/config_record.h"
#include "redis/redis_store.h"

namespace fcap::cli {
namespace {

Result<std::string> read_password(const AccessSettings& access) {
  if (access.redis_password_file.empty()) return access.redis_password;
  std::ifstream file(access.redis_password_file);
  if (!file) {
    return Status::error(
        StatusCode::kNotFound,
        "--redis-password-file: " + access.redis_password_file + " cannot be opened");
  }
  std::string password((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  while (!password.empty() && (password.back() == '\n' || password.back() == '\r')) {
    password.pop_back();
  }
  return password;
}

/// One command whose reply is an integer.
class IntegerRequest final : public redis::Request {
 public:
  void on_reply(std::uint32_t, const redis::Reply& reply) noexcept override {
    if (reply.kind == redis::Reply::Kind::kInteger) value_ = reply.integer;
  }
  void on_done(redis::TransportCode code) noexcept override {
    const std::lock_guard lock(mutex_);
    code_ = code;
    done_ = true;
    changed_.notify_one();
  }
  /// None: no answer.
  std::optional<std::int64_t> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    return code_ == redis::TransportCode::kOk ? value_ : std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  redis::TransportCode code_ = redis::TransportCode::kUnavailable;
  std::optional<std::int64_t> value_;
};

}  // namespace

Result<std::unique_ptr<RecordReader>> RecordReader::open(const AccessSettings& access) {
  const auto timeout = parse_duration(access.timeout, "--timeout");
  if (!timeout.ok()) return timeout.status();
  Result<std::string> password = read_password(access);
  if (!password.ok()) return password.status();
  Result<RedisOptions> target = redis_target(access, std::move(password).value());
  if (!target.ok()) return target.status();
  const RedisOptions& options = target.value();
  Result<std::unique_ptr<redis::Client>> client = redis::Client::create(options);
  if (!client.ok()) {
    return Status::error(client.status().code(), "--redis: " + client.status().text());
  }
  std::unique_ptr<RecordReader> reader(new RecordReader);
  reader->address_ = options.addresses.front();
  reader->key_prefix_ = access.key_prefix;
  reader->timeout_ = timeout.value();
  reader->client_ = std::move(client).value();
  reader->store_ = redis::make_redis_store(reader->client_);
  const auto deadline = std::chrono::steady_clock::now() + timeout.value();
  while (!reader->client_->connected()) {
    // Whoever waits at a terminal wants to know at once; trying again is theirs.
    if (!reader->client_->last_error().empty()) {
      return reader->explain(Status::error(StatusCode::kUnavailable, "no connection", true));
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return reader->explain(
          Status::error(StatusCode::kUnavailable, "no connection within " + access.timeout, true));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return reader;
}

Status RecordReader::explain(const Status& status) const {
  std::string text = "Redis at " + address_ + " (--redis, FCAP_REDIS): " + status.text();
  if (const std::string why = client_->last_error(); !why.empty()) text += ": " + why;
  return Status::error(status.code(), std::move(text), status.retryable());
}

std::string RecordReader::config_warning(const AccessSettings& access) {
  const auto recorded = blocking_get(*store_, redis::config_key(key_prefix_), timeout_);
  const auto retention = parse_duration(access.retention, "--retention");
  if (!recorded.ok() || !retention.ok()) return {};
  if (!recorded.value()) {
    return "no updater has ever written below the prefix \"" + key_prefix_ + "\" in database " +
           std::to_string(access.redis_database) + " of " + address_ +
           "; see --redis, --redis-database and --key-prefix\n";
  }
  const auto record = redis::parse_config(*recorded.value());
  if (!record.ok()) return {};
  const std::string differences =
      redis::config_differences(record.value(), {.key_prefix = key_prefix_,
                                                 .retention = retention.value(),
                                                 .null_user_ids = access.null_user_ids});
  if (differences.empty()) return {};
  return "the updater is set otherwise: " + differences + "\n";
}

std::string RecordReader::key_of(const std::string& user) const {
  std::string key;
  ledger::user_key(key_prefix_, user, key);
  return key;
}

Result<std::optional<std::string>> RecordReader::read(const std::string& user) {
  Result<std::optional<std::string>> record = blocking_get(*store_, key_of(user), timeout_);
  if (!record.ok()) return explain(record.status());
  return record;
}

Result<std::optional<std::chrono::milliseconds>> RecordReader::time_to_live(
    const std::string& user) {
  const std::string key = key_of(user);
  IntegerRequest request;
  redis::append_command(request.wire, {"PTTL", key});
  request.slot = redis::slot_of(key);
  request.deadline = std::chrono::steady_clock::now() + timeout_;
  client_->submit(request);
  const auto ttl_ms = request.wait();
  if (!ttl_ms) {
    return explain(Status::error(StatusCode::kUnavailable, "PTTL was not answered", true));
  }
  if (*ttl_ms < 0) return std::optional<std::chrono::milliseconds>();
  return std::optional<std::chrono::milliseconds>(std::chrono::milliseconds(*ttl_ms));
}

}  // namespace fcap::cli
