#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>

#include <fcap/store.h>

namespace fcap::updater::testing {

/// A store in memory that does what servers and networks do. Operations wait in a queue until they
/// are run, in any order, each with a fault or none; or, when `immediate`, run at once.
class FaultStore final : public Store {
 public:
  enum class Fault : std::uint8_t {
    kNone,
    kRefused,    ///< not executed, and said so
    kLost,       ///< not executed, timed out
    kReplyLost,  ///< executed, timed out
    kNoExpiry,   ///< an append: executed, but the expiry after it was refused
  };

  void get(std::string_view key, Deadline, StoreCompletion& done) noexcept override {
    enqueue([this, key = std::string(key), &done](Fault fault) {
      if (is_away && is_away(key)) fault = Fault::kLost;
      if (key == unreadable_key) return done.complete({unreadable_code, {}, 0, refusal});
      if (fault != Fault::kNone) return done.complete({code_of(fault), {}, 0, text_of(fault)});
      const auto found = records_.find(key);
      if (found == records_.end()) return done.complete({StoreCode::kNotFound, {}, 0, {}});
      done.complete({StoreCode::kOk, found->second.bytes, 0, {}});
    });
  }

  void append(std::string_view key, std::string_view bytes, Instant expire_at, Deadline,
              StoreCompletion& done) noexcept override {
    enqueue(
        [this, key = std::string(key), bytes = std::string(bytes), expire_at, &done](Fault fault) {
          std::size_t length = 0;
          if (fault == Fault::kNone || fault == Fault::kReplyLost) {
            Record& record = records_[key];
            record.bytes += bytes;
            record.expire_at = std::max(record.expire_at, expire_at);
            length = record.bytes.size();
            ++writes_;
          }
          done.complete({code_of(fault), {}, fault == Fault::kNone ? length : 0, text_of(fault)});
        });
  }

  // Leaves the expiry alone wherever it may.
  void append_all(std::span<const Append> appends, Deadline,
                  StoreListCompletion& done) noexcept override {
    for (std::size_t i = 0; i < appends.size(); ++i) {
      const Append& append = appends[i];
      enqueue([this, i, key = std::string(append.key), bytes = std::string(append.bytes),
               expire_at = append.expire_at, known_bytes = append.known_bytes, &done](Fault fault) {
        std::size_t length = 0;
        if (is_away && is_away(key)) fault = Fault::kLost;
        if (key == refused_key) {
          return done.complete(i, {StoreCode::kServerError, {}, 0, refusal});
        }
        if (fault == Fault::kNone && refuse_expiries) fault = Fault::kNoExpiry;
        // Setting the expiry of a record that is gone makes no record.
        if (bytes.empty() && !records_.contains(key)) {
          return done.complete(i, {code_of(fault), {}, 0, text_of(fault)});
        }
        if (fault == Fault::kNoExpiry) {
          Record& record = records_[key];
          record.bytes += bytes;
          length = record.bytes.size();
          ++writes_;
        } else if (fault == Fault::kNone || fault == Fault::kReplyLost) {
          Record& record = records_[key];
          if (known_bytes == record.bytes.size() && known_bytes != 0) {
            ++expiries_left_;
          } else {
            record.expire_at = std::max(record.expire_at, expire_at);
          }
          record.bytes += bytes;
          length = record.bytes.size();
          ++writes_;
        }
        const bool told = fault == Fault::kNone || fault == Fault::kNoExpiry;
        done.complete(i, {.code = code_of(fault),
                          .length_bytes = told ? length : 0,
                          .text = text_of(fault),
                          .connection_epoch = epoch_of ? epoch_of(key) : 0});
      });
    }
  }

  void compare_and_set(const CompareAndSet& change, Deadline,
                       StoreCompletion& done) noexcept override {
    enqueue(
        [this, key = std::string(change.key), desired = std::string(change.desired),
         expected = change.expected ? std::optional<std::string>(*change.expected) : std::nullopt,
         expire_at = change.expire_at, keep_appended = change.keep_appended,
         bound_to = change.connection_epoch, &done](Fault fault) {
          const auto bound_now = epoch_of ? epoch_of(key) : epoch ? epoch() : 0;
          if ((epoch || epoch_of) && bound_to && *bound_to != bound_now) {
            return done.complete({StoreCode::kUnavailable, {}, 0, {}});
          }
          if (refuse_exchanges) fault = Fault::kRefused;
          if (is_away && is_away(key)) fault = Fault::kLost;
          if (fault == Fault::kRefused || fault == Fault::kLost) {
            return done.complete({code_of(fault), {}, 0, text_of(fault)});
          }
          const auto found = records_.find(key);
          std::string tail;
          bool as_expected = found == records_.end()
                                 ? !expected.has_value()
                                 : expected.has_value() && found->second.bytes == *expected;
          if (!as_expected && keep_appended && found != records_.end() &&
              found->second.bytes.starts_with(*expected)) {
            tail = found->second.bytes.substr(expected->size());
            as_expected = true;
          }
          if (as_expected) {
            Record& record = records_[key];
            record.bytes = desired + tail;
            record.expire_at = std::max(record.expire_at, expire_at);
            ++writes_;
          }
          const StoreCode code = as_expected ? StoreCode::kOk : StoreCode::kConflict;
          done.complete({fault == Fault::kNone ? code : code_of(fault), {}, 0, text_of(fault)});
        });
  }

  struct Record {
    std::string bytes;
    Instant expire_at{};
    friend bool operator==(const Record&, const Record&) = default;
  };
  using Records = std::map<std::string, Record>;

  [[nodiscard]] const Records& records() const noexcept { return records_; }
  [[nodiscard]] Records& records() noexcept { return records_; }
  [[nodiscard]] std::uint64_t writes() const noexcept { return writes_; }
  /// Appends that have left the expiry alone.
  [[nodiscard]] std::uint64_t expiries_left() const noexcept { return expiries_left_; }
  [[nodiscard]] std::size_t waiting() const noexcept { return queue_.size(); }

  /// Runs the i-th waiting operation.
  void run(std::size_t i, Fault fault = Fault::kNone) {
    const Operation operation = std::move(queue_[i]);
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(i));
    operation(fault);
  }
  void run_all() {
    while (!queue_.empty()) run(0);
  }

  /// What an operation meets when it runs at once; asked for each.
  std::function<Fault()> next_fault;
  /// The epoch of the connection; if unset, the store has no connections.
  std::function<std::uint64_t()> epoch;
  /// In a cluster: that of the connections to the master that has the key, and whether that master
  /// cannot be reached.
  std::function<std::uint64_t(std::string_view key)> epoch_of;
  std::function<bool(std::string_view key)> is_away;
  bool immediate = true;
  /// As an account does that may not run scripts, or not PEXPIREAT.
  bool refuse_exchanges = false;
  bool refuse_expiries = false;
  /// Appends to this key are answered with this error.
  std::string refused_key;
  std::string refusal;
  /// Reads of this key are answered with this code, and with `refusal`.
  std::string unreadable_key;
  StoreCode unreadable_code = StoreCode::kServerError;

 private:
  using Operation = std::function<void(Fault)>;

  static StoreCode code_of(Fault fault) noexcept {
    switch (fault) {
      case Fault::kNone:
        return StoreCode::kOk;
      case Fault::kRefused:
      case Fault::kNoExpiry:
        return StoreCode::kServerError;
      case Fault::kLost:
      case Fault::kReplyLost:
        return StoreCode::kTimeout;
    }
    return StoreCode::kOk;
  }

  static std::string_view text_of(Fault fault) noexcept {
    return code_of(fault) == StoreCode::kServerError ? "NOPERM this user may not" : "";
  }

  void enqueue(Operation operation) {
    if (immediate) {
      operation(next_fault ? next_fault() : Fault::kNone);
    } else {
      queue_.push_back(std::move(operation));
    }
  }

  Records records_;
  std::deque<Operation> queue_;
  std::uint64_t writes_ = 0;
  std::uint64_t expiries_left_ = 0;
};

}  // namespace fcap::updater::testing
