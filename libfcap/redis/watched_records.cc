#include "redis/watched_records.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "redis/client.h"
#include "redis/command.h"
#include "redis/store_operation.h"

namespace fcap::redis {
namespace {

// The commands of read(), in order.
constexpr std::uint32_t kMulti = 0;
constexpr std::uint32_t kExec = 1;
constexpr std::uint32_t kWatch = 2;
constexpr std::uint32_t kFirstExpiry = 3;

constexpr std::int64_t kNoKey = -2;  // of PEXPIRETIME

class ClientWatchedRecords final : public WatchedRecords, private Request {
 public:
  explicit ClientWatchedRecords(Client& client) : client_(client) {}

  // An empty transaction comes first. It ends what an earlier group may still watch, and shows that
  // the account may use MULTI: without it, the SETs of replace() would be executed one by one,
  // whatever has changed.
  void read(std::span<const std::string_view> keys, Deadline deadline_at,
            Completion& done) noexcept override {
    begin(WatchStage::kRead, deadline_at, done);
    keys_ = static_cast<std::uint32_t>(keys.size());
    epoch = client_.connection_epoch();
    append_command(wire, {"MULTI"});
    append_command(wire, {"EXEC"});
    append_keys("WATCH", keys);
    for (const std::string_view key : keys) append_command(wire, {"PEXPIRETIME", key});
    append_keys("MGET", keys);
    command_count = kFirstExpiry + keys_ + 1;
    expiries_.clear();
    client_.submit(*this);
  }

  // Bound to the connection on which the records are watched.
  void replace(std::span<const Change> changes, Deadline deadline_at,
               Completion& done) noexcept override {
    begin(WatchStage::kReplace, deadline_at, done);
    keys_ = static_cast<std::uint32_t>(changes.size());
    append_command(wire, {"MULTI"});
    for (const Change& change : changes) {
      if (change.desired.empty()) {
        append_command(wire, {"DEL", change.key});
      } else {
        append_command(wire, {"SET", change.key, change.desired, "PXAT",
                              std::to_string(to_ms(change.expire_at))});
      }
    }
    append_command(wire, {"EXEC"});
    command_count = keys_ + 2;
    client_.submit(*this);
  }

 private:
  enum class WatchStage : std::uint8_t { kRead, kReplace };

  void begin(WatchStage stage, Deadline deadline_at, Completion& done) {
    stage_ = stage;
    done_ = &done;
    deadline = deadline_at;
    code_ = StoreCode::kOk;
    wire.clear();
  }

  void append_keys(std::string_view command, std::span<const std::string_view> keys) {
    append_word_count(wire, keys.size() + 1);
    append_word(wire, command);
    for (const std::string_view key : keys) append_word(wire, key);
  }

  void on_reply(std::uint32_t index, const Reply& reply) noexcept override {
    if (stage_ == WatchStage::kRead) {
      on_read_reply(index, reply);
    } else if (index == keys_ + 1) {
      on_executed(reply);
    } else if (reply.kind != Reply::Kind::kStatus) {
      code_ = StoreCode::kServerError;  // EXEC says it, too
    }
  }

  void on_read_reply(std::uint32_t index, const Reply& reply) {
    if (reply.kind != kind_of(index)) code_ = StoreCode::kServerError;
    if (code_ != StoreCode::kOk) return;
    if (index < kFirstExpiry) return;
    if (index < kFirstExpiry + keys_) {
      expiries_.push_back(reply.integer);
    } else if (reply.elements.size() == keys_) {
      for (std::size_t i = 0; i < keys_; ++i) pass_on(i, reply.elements[i]);
    } else {
      code_ = StoreCode::kServerError;
    }
  }

  // The kind that the reply to a command of read() must have.
  [[nodiscard]] Reply::Kind kind_of(std::uint32_t index) const noexcept {
    if (index == kMulti || index == kWatch) return Reply::Kind::kStatus;
    if (index == kExec) return Reply::Kind::kArray;
    return index < kFirstExpiry + keys_ ? Reply::Kind::kInteger : Reply::Kind::kArray;
  }

  void pass_on(std::size_t index, const Reply& record) {
    const std::int64_t expiry = expiries_[index];
    const auto expire_at = expiry < 0 ? std::nullopt : std::optional(instant_from_ms(expiry));
    switch (record.kind) {
      case Reply::Kind::kString:
        return done_->on_record(index, {.code = StoreCode::kOk, .record = record.text}, expire_at);
      case Reply::Kind::kNil:
        // MGET has no word for a value of another type; PEXPIRETIME tells it from no value.
        return done_->on_record(
            index, {.code = expiry == kNoKey ? StoreCode::kNotFound : StoreCode::kServerError}, {});
      default:
        return done_->on_record(index, {.code = StoreCode::kTooLarge}, expire_at);
    }
  }

  void on_executed(const Reply& reply) {
    if (reply.kind == Reply::Kind::kNil) {
      code_ = StoreCode::kConflict;
    } else if (reply.kind != Reply::Kind::kArray || reply.elements.size() != keys_ ||
               std::ranges::any_of(reply.elements, [](const Reply& one) {
                 return one.kind == Reply::Kind::kError;
               })) {
      code_ = StoreCode::kServerError;
    }
  }

  void on_done(TransportCode code) noexcept override {
    done_->on_done(code == TransportCode::kOk ? code_ : store_code(code));
  }

  Client& client_;
  Completion* done_ = nullptr;
  WatchStage stage_ = WatchStage::kRead;
  StoreCode code_ = StoreCode::kOk;
  std::uint32_t keys_ = 0;
  std::vector<std::int64_t> expiries_;
};

}  // namespace

std::unique_ptr<WatchedRecords> make_watched_records(Client& client) {
  return client.is_cluster() ? nullptr : std::make_unique<ClientWatchedRecords>(client);
}

}  // namespace fcap::redis
