#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/store.h>
#include <fcap/time.h>

namespace fcap::updater {

/// The key of a partition's mark: "<prefix>:mark:{0}:<group>:<topic>:<partition>". The braces hold
/// the node's tag: a cluster will need a mark per node.
[[nodiscard]] std::string mark_key(std::string_view prefix, std::string_view group,
                                   std::string_view topic, std::int32_t partition);

/// A mark as stored: a decimal offset. None: not one.
[[nodiscard]] std::optional<std::int64_t> parse_mark(std::string_view text) noexcept;

/// One partition's mark in the store, one operation at a time. Writes replace only the mark that
/// was confirmed last, so a mark that something else changed is never overwritten unseen, and a
/// crash between a write and its answer hides no loss.
///
/// Thread safety: one thread calls it; completions arrive from anywhere. It must outlive its
/// operation (busy()).
class Mark final : public StoreCompletion {
 public:
  Mark(Store& store, std::string key) : store_(&store), key_(std::move(key)) {}
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  /// Starts reading what stands in the store. Not while busy().
  void read(Store::Deadline deadline);
  /// Starts replacing the confirmed mark (or its absence). Not while busy() or before a read.
  void write(std::int64_t offset, Instant expire_at, Store::Deadline deadline);

  [[nodiscard]] bool busy() const noexcept { return operation_ != Operation::kNone; }

  /// busy(), and not ended yet.
  [[nodiscard]] bool running() const noexcept {
    return busy() && !ended_.load(std::memory_order_acquire);
  }

  enum class Outcome : std::uint8_t {
    kNothing,   ///< nothing has ended since the last call
    kRead,      ///< found() is what stands in the store
    kUnread,    ///< the read failed
    kWritten,   ///< confirmed() is what was written
    kConflict,  ///< what stands in the store is not what was confirmed; nothing was written
    kUnknown,   ///< the write may or may not have happened: read
  };
  /// What has ended since the last call. Without `trust`, a write that was acknowledged counts as
  /// kUnknown.
  Outcome poll(bool trust);

  [[nodiscard]] std::optional<std::int64_t> found() const noexcept { return found_; }
  [[nodiscard]] std::optional<std::int64_t> confirmed() const noexcept { return confirmed_; }
  [[nodiscard]] std::optional<std::int64_t> attempted() const noexcept { return attempted_; }
  /// Of the operation that ended last, if it failed: why.
  [[nodiscard]] std::string failure() const;

  /// The mark found by the last read is now the confirmed one.
  void accept_found() noexcept;

  void complete(const StoreOutcome& outcome) noexcept override;

 private:
  enum class Operation : std::uint8_t { kNone, kRead, kWrite };

  Store* store_;
  std::string key_;
  Operation operation_ = Operation::kNone;
  // What stands in the store byte by byte: a mark that is no number is replaced all the same.
  std::optional<std::string> confirmed_text_;
  std::optional<std::int64_t> confirmed_;
  std::optional<std::int64_t> attempted_;
  std::optional<std::string> found_text_;
  std::optional<std::int64_t> found_;

  // Written by complete(), read after ended_.
  StoreCode code_ = StoreCode::kOk;
  std::string record_;
  std::string text_;
  std::atomic<bool> ended_{false};
};

}  // namespace fcap::updater
