#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/store.h>
#include <fcap/time.h>

#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// One partition's mark in the store, one operation at a time. Writes replace only the mark that
/// was confirmed last, so a mark that something else changed is never overwritten unseen, and a
/// crash between a write and its answer hides no loss.
///
/// We compare and set rather than SET, because a mark is a claim about the very data set that it
/// stands in: every event below this offset is in here. After a failover, a restored backup or a
/// FLUSHALL the data set is another one. A SET would put the claim on a server that lacks the
/// events, and nothing would ever find out; the comparison fails, and the updater reads again what
/// is missing. For the same reason a write without an answer (kUnknown) is neither repeated nor
/// believed: the mark is read first.
///
/// Thread safety: one thread calls it; completions arrive from anywhere. It must outlive its
/// operation (busy()).
class Mark final : public StoreCompletion {
 public:
  Mark(Store& store, std::string key) : store_(&store), key_(std::move(key)) {}
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  /// Starts reading the value in the store. Not while busy().
  void read(Store::Deadline deadline);
  /// Starts replacing the confirmed mark (or its absence). Not while busy() or before a read.
  /// `epoch`: that of the connections on which the events below the mark were acknowledged; nothing
  /// is written over others.
  void write(MarkValue value, Instant expire_at, Store::Deadline deadline, std::uint64_t epoch);

  [[nodiscard]] bool busy() const noexcept { return operation_ != Operation::kNone; }

  /// busy(), and not ended yet.
  [[nodiscard]] bool running() const noexcept {
    return busy() && pending_.load(std::memory_order_acquire);
  }

  enum class MarkOutcome : std::uint8_t {
    kNothing,     ///< nothing has ended since the last call
    kRead,        ///< found() is the value in the store
    kReadFailed,  ///< the read failed
    kWritten,     ///< confirmed() is what was written
    kConflict,    ///< the value in the store is not the confirmed one; nothing was written
    kUnknown,     ///< the write may or may not have happened: the mark must be read
  };
  /// The outcome of the operation that has ended since the last call. Without `trust`, an
  /// acknowledged write counts as kUnknown.
  MarkOutcome poll(bool trust);

  using Value = std::optional<MarkValue>;
  [[nodiscard]] const Value& found() const noexcept { return found_; }
  /// The mark's key, if the last read has found a value there that is no mark; empty: it has not.
  [[nodiscard]] std::string_view key_of_no_mark() const noexcept {
    return no_mark_ ? key_ : std::string_view{};
  }
  [[nodiscard]] const Value& confirmed() const noexcept { return confirmed_; }
  [[nodiscard]] const Value& attempted() const noexcept { return attempted_; }
  /// Why the operation that ended last has failed, if it has.
  [[nodiscard]] std::string failure() const;

  /// The mark found by the last read is now the confirmed one.
  void accept_found() noexcept;

  void complete(const StoreOutcome& outcome) noexcept override;

 private:
  enum class Operation : std::uint8_t { kNone, kRead, kWrite };

  MarkOutcome take_read();

  Store* store_;
  std::string key_;
  Operation operation_ = Operation::kNone;
  // The value in the store byte by byte: a mark that cannot be decoded is replaced all the same.
  std::optional<std::string> confirmed_text_;
  Value confirmed_;
  Value attempted_;
  std::optional<std::string> found_text_;
  Value found_;
  bool no_mark_ = false;

  // Written by complete(), read when nothing is pending.
  StoreCode code_ = StoreCode::kOk;
  std::string record_;
  std::string text_;
  std::atomic<bool> pending_{false};
};

}  // namespace fcap::updater
