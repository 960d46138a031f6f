#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/log.h>

#include "base/backoff.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/dead_letter.h"

namespace fcap::updater {

struct DeadLetterOptions {
  std::chrono::milliseconds backoff_min{100};
  std::chrono::milliseconds backoff_max{5000};
  std::size_t bytes_max = std::size_t{32} * 1024 * 1024;
  std::size_t letters_max = 100'000;
  std::uint64_t jitter_seed = 1;
};

/// The dead letters that have not arrived yet. Each is sent again until it has; one that is too
/// large for the topic is sent as a stub. Writes to Redis never wait for them, only offsets do.
///
/// Thread safety: one thread (the main loop's) calls it; completions arrive from anywhere.
class DeadLetterBox {
 public:
  using Clock = std::chrono::steady_clock;

  /// The position of a letter's message, and the generation of its partition.
  struct LetterPosition {
    std::int32_t partition;
    std::uint64_t generation;
    std::int64_t offset;
  };
  /// Whether a generation of a partition is the present one.
  using Current = std::function<bool(std::int32_t partition, std::uint64_t generation)>;

  /// `sink` null: letters are only counted. It must outlive the box.
  DeadLetterBox(DeadLetterSink* sink, const DeadLetterOptions& options, Metrics& metrics,
                LogCallback log);
  /// Waits for letters that are being sent.
  ~DeadLetterBox();
  DeadLetterBox(const DeadLetterBox&) = delete;
  DeadLetterBox& operator=(const DeadLetterBox&) = delete;

  /// Starts sending.
  void put(DeadLetter letter, std::uint64_t generation);
  /// Returns the positions of the letters that have arrived, and sends due letters again. If a
  /// letter has failed and its partition is no longer read in that generation, it is dropped:
  /// whoever reads the partition will read the message again.
  void tick(Clock::time_point now, const Current& current, std::vector<LetterPosition>& arrived);

  /// The partitions that wait because one of their letters has failed. The others continue.
  [[nodiscard]] const std::set<std::int32_t>& waiting_partitions() const noexcept {
    return waiting_;
  }
  /// Whether another letter would be above the bounds.
  [[nodiscard]] bool full() const noexcept {
    return bytes_ >= options_.bytes_max || slots_.size() >= options_.letters_max;
  }
  /// Letters that are being sent for the first time.
  [[nodiscard]] std::size_t first_attempts() const noexcept { return first_attempts_; }
  [[nodiscard]] bool failing() const noexcept { return !waiting_.empty(); }
  /// While failing(): the last failure, with the broker's words.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

 private:
  struct HeldLetter final : DeadLetterCompletion {
    HeldLetter(DeadLetterBox& owner, DeadLetter what, std::uint64_t of)
        : box(&owner), letter(std::move(what)), generation(of) {}
    void delivered(Delivery delivery, std::string_view text) noexcept override;
    DeadLetterBox* box;
    DeadLetter letter;
    std::uint64_t generation;
    std::size_t index = 0;  // in slots_
    std::uint32_t attempts = 0;
    std::uint32_t failures = 0;  // not counting "too large"
    std::uint32_t cuts = 0;
    Clock::time_point retry_at;
    // How the last attempt has ended.
    Delivery result = Delivery::kFailed;
    std::string why;
  };

  void send(HeldLetter& slot);
  /// Whether it is over with the slot.
  bool settle(HeldLetter& slot, Clock::time_point now, const Current& current,
              std::vector<LetterPosition>& arrived);
  void failed(HeldLetter& slot, Clock::time_point now);
  void find_waiting();
  void count_arrived(const HeldLetter& slot);
  void remove(const HeldLetter& slot);

  DeadLetterSink* sink_;
  DeadLetterOptions options_;
  Metrics* metrics_;
  LogCallback log_;
  base::Backoff backoff_;
  std::vector<std::unique_ptr<HeldLetter>> slots_;
  std::vector<HeldLetter*> retries_;  // wait for their next attempt
  std::vector<HeldLetter*> ended_;    // scratch of tick()
  std::set<std::int32_t> waiting_;
  std::string trouble_;
  std::size_t bytes_ = 0;
  std::size_t first_attempts_ = 0;
  bool some_failed_ = false;  // whether some slot has

  std::mutex mutex_;
  std::condition_variable none_under_way_;
  std::vector<HeldLetter*> attempts_ended_;  // guarded by mutex_
  std::size_t under_way_ = 0;                // guarded by mutex_
};

}  // namespace fcap::updater
