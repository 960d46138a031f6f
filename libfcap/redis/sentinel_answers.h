#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "redis/address.h"

namespace fcap::redis {

/// What a Sentinel says about a master.
struct NamedMaster {
  Address address;
  std::uint64_t epoch = 0;  ///< its config-epoch; 0: it does not tell
};

/// The latest answer of each Sentinel, and which of them counts: that of the highest config-epoch,
/// which each failover raises and by which Sentinels themselves settle who is right. Of answers
/// with one epoch the master that most name counts, and of these the one that counted before. Free
/// of clocks and I/O.
///
/// Thread safety: none.
class SentinelAnswers {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// How long the answer of a Sentinel counts that gives no other. One that is only cut off must
  /// not be forgotten in favor of one that knows less; one that was removed must be, some day.
  static constexpr std::chrono::minutes kKept{10};

  explicit SentinelAnswers(std::size_t sentinels) : answers_(sentinels) {}

  /// Takes what a Sentinel has said. Returns the Sentinel whose answer counts now.
  std::size_t take(std::size_t sentinel, NamedMaster named, TimePoint now);
  /// Of one that has answered.
  [[nodiscard]] const NamedMaster& answer(std::size_t sentinel) const {
    return answers_[sentinel]->named;
  }

 private:
  struct Answer {
    NamedMaster named;
    TimePoint at;
  };

  [[nodiscard]] std::size_t count_of(const Answer& answer) const;

  std::vector<std::optional<Answer>> answers_;
  std::string counting_;  // the address that counted last
};

}  // namespace fcap::redis
