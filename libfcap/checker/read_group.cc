#include "checker/read_group.h"

#include <new>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace fcap::checker {
namespace {

constexpr std::uint32_t kSleeping = std::uint32_t{1} << 31;
// What a group may keep for the next call: a batch's reads and usual records, not a bot's.
constexpr std::size_t kKeptReadsMax = 64;
constexpr std::size_t kKeptRecordBytesMax = std::size_t{16} * 1024;

std::uint32_t* futex_word(std::atomic<std::uint32_t>& word) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  return reinterpret_cast<std::uint32_t*>(&word);
}

// steady_clock is CLOCK_MONOTONIC, the clock that FUTEX_WAIT_BITSET measures absolute times by.
void futex_wait_until(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::chrono::steady_clock::time_point deadline) noexcept {
  const auto since_boot = deadline.time_since_epoch();
  const auto whole = std::chrono::floor<std::chrono::seconds>(since_boot);
  const timespec until{
      .tv_sec = static_cast<time_t>(whole.count()),
      .tv_nsec = static_cast<long>(std::chrono::nanoseconds(since_boot - whole).count())};
  ::syscall(SYS_futex, futex_word(word), FUTEX_WAIT_BITSET_PRIVATE, expected, &until, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

void futex_wake_one(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, futex_word(word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

void ReadGroup::prepare(std::size_t read_count) {
  while (reads_.size() < read_count) reads_.emplace_back();
  for (std::size_t i = 0; i < read_count; ++i) {
    reads_[i].group_ = this;
    reads_[i].done_.store(false, std::memory_order_relaxed);
  }
  used_count_ = read_count;
  wake_at_.store(0, std::memory_order_relaxed);
  abandoned_.store(false, std::memory_order_relaxed);
  outstanding_.store(static_cast<std::uint32_t>(read_count), std::memory_order_relaxed);
  references_.store(static_cast<std::uint32_t>(read_count) + 1, std::memory_order_relaxed);
}

void ReadGroup::start(Store& store, std::size_t index, std::string_view read_key,
                      Store::Deadline deadline) {
  store.get_maybe_stale(read_key, deadline, reads_[index]);
}

bool ReadGroup::read_directly(redis::DirectReads* direct, std::size_t index,
                              std::string_view read_key, Store::Deadline deadline) noexcept {
  return direct != nullptr && direct->read(read_key, deadline, reads_[index]);
}

void ReadGroup::Read::complete(const StoreOutcome& outcome) noexcept {
  ReadGroup& group = *group_;
  if (!group.abandoned_.load(std::memory_order_relaxed)) {
    code_ = outcome.code;
    stale_ = outcome.stale;
    length_bytes_ = outcome.length_bytes;
    try {
      record_.assign(outcome.record);
    } catch (const std::bad_alloc&) {
      code_ = StoreCode::kOverloaded;
    }
    done_.store(true, std::memory_order_release);
  }
  // From here on the caller may find that all has come, and leave. The reference that this read
  // still holds keeps the group, and so the word that is woken, until the end.
  const auto before = group.outstanding_.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kSleeping) != 0 &&
      (before & ~kSleeping) - 1 <= group.wake_at_.load(std::memory_order_relaxed)) {
    futex_wake_one(group.outstanding_);
  }
  group.drop_reference();
}

std::size_t ReadGroup::outstanding() const noexcept {
  return outstanding_.load(std::memory_order_acquire) & ~kSleeping;
}

void ReadGroup::wait_until_left(std::size_t left,
                                std::chrono::steady_clock::time_point deadline) noexcept {
  // Relaxed is enough: a read looks at it only after it has seen kSleeping, which this thread sets
  // afterwards.
  wake_at_.store(static_cast<std::uint32_t>(left), std::memory_order_relaxed);
  std::uint32_t seen = outstanding_.load(std::memory_order_acquire);
  if ((seen & kSleeping) != 0) {
    seen = outstanding_.fetch_and(~kSleeping, std::memory_order_acq_rel) & ~kSleeping;
  }
  while ((seen & ~kSleeping) > left) {
    if (std::chrono::steady_clock::now() >= deadline) {
      abandoned_.store(true, std::memory_order_relaxed);
      return;
    }
    if ((seen & kSleeping) == 0 &&
        !outstanding_.compare_exchange_weak(seen, seen | kSleeping, std::memory_order_acq_rel)) {
      continue;
    }
    futex_wait_until(outstanding_, seen | kSleeping, deadline);
    seen = outstanding_.load(std::memory_order_acquire);
  }
}

void ReadGroup::leave() noexcept {
  drop_reference();
}

void ReadGroup::drop_reference() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) recycle();
}

void ReadGroup::recycle() noexcept {
  while (reads_.size() > kKeptReadsMax) reads_.pop_back();
  if (questions.size() > kKeptReadsMax) questions.resize(kKeptReadsMax);
  if (asked.capacity() > kKeptReadsMax) std::vector<std::size_t>().swap(asked);
  for (std::size_t i = 0; i < used_count_ && i < reads_.size(); ++i) {
    if (reads_[i].record_.capacity() > kKeptRecordBytesMax) std::string().swap(reads_[i].record_);
  }
  Pool<ReadGroup>::release(this);
}

}  // namespace fcap::checker
