#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/store.h>

#include "checker/pool.h"
#include "checker/question.h"
#include "redis/direct_reads.h"

namespace fcap::checker {

/// The reads of one blocking call, and the place where its caller waits for them. The caller and
/// each read hold a reference: a caller whose deadline passes walks away, and what completes later
/// writes to memory that is still alive but no longer read.
class ReadGroup : public PoolNode<ReadGroup> {
 public:
  /// What one read gave; looked at only when answered.
  class Read final : public StoreCompletion {
   public:
    void complete(const StoreOutcome& outcome) noexcept override;

    /// False: not in time.
    [[nodiscard]] bool answered() const noexcept { return done_.load(std::memory_order_acquire); }
    [[nodiscard]] StoreCode code() const noexcept { return code_; }
    [[nodiscard]] std::string_view record() const noexcept { return record_; }
    [[nodiscard]] bool stale() const noexcept { return stale_; }
    /// What became of any operation, without its text.
    [[nodiscard]] StoreOutcome outcome() const noexcept {
      return {.code = code_, .record = record_, .length_bytes = length_bytes_, .stale = stale_};
    }

   private:
    friend class ReadGroup;
    ReadGroup* group_ = nullptr;
    std::string record_;
    std::size_t length_bytes_ = 0;
    StoreCode code_ = StoreCode::kOk;
    bool stale_ = false;
    std::atomic<bool> done_{false};
  };

  /// Makes ready for that many reads, none of which may be under way; start() must be called for
  /// each. Throws std::bad_alloc, and is then ready for none.
  void prepare(std::size_t read_count);
  void start(Store& store, std::size_t index, std::string_view key, Store::Deadline deadline);
  /// For an operation that the caller starts itself, in place of start().
  [[nodiscard]] StoreCompletion& completion(std::size_t index) noexcept { return reads_[index]; }
  /// Starts the read and waits for it, on this thread. False: that is not possible now, and start()
  /// must be called instead.
  [[nodiscard]] bool read_directly(redis::DirectReads* direct, std::size_t index,
                                   std::string_view key, Store::Deadline deadline) noexcept;
  /// Returns when no more than `left` have not completed, or the deadline has passed.
  void wait_until_left(std::size_t left, std::chrono::steady_clock::time_point deadline) noexcept;
  [[nodiscard]] std::size_t outstanding() const noexcept;
  [[nodiscard]] const Read& read(std::size_t index) const noexcept { return reads_[index]; }
  /// The caller is done with it.
  void leave() noexcept;

  /// For the caller's own use: kept with the group for their memory.
  std::string key;
  std::vector<Question> questions;
  std::vector<std::size_t> asked;

 private:
  void drop_reference() noexcept;
  void recycle() noexcept;

  std::deque<Read> reads_;  // a deque, because a Read must not move
  std::size_t used_count_ = 0;
  std::atomic<bool> abandoned_{false};
  std::atomic<std::uint32_t> wake_at_{0};  // how many are left when the caller wants to be woken
  std::atomic<std::uint32_t> references_{0};
  // How many reads are outstanding, and kSleeping when the caller sleeps on this word.
  std::atomic<std::uint32_t> outstanding_{0};
};

struct LeaveGroup {
  void operator()(ReadGroup* group) const noexcept { group->leave(); }
};
/// A group while a caller has it.
using HeldGroup = std::unique_ptr<ReadGroup, LeaveGroup>;

}  // namespace fcap::checker
