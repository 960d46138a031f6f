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
  /// Its config-epoch, 0 before the first failover; nullopt: the Sentinel does not tell it.
  std::optional<std::uint64_t> epoch;
};

/// The latest answer of each Sentinel, and which of them counts: that of the highest config-epoch,
/// which each failover raises and by which Sentinels themselves settle who is right. Among answers
/// with one epoch, and where some Sentinel does not tell its epoch, the master that most name
/// counts, then the one that counted before, then the one named last. Free of clocks and I/O.
///
/// What a Sentinel said before it fell silent goes on counting: otherwise a short interruption on
/// the way to those that know of a failover would leave the word to one that does not, and would
/// lead a client from the master back to a former one.
///
/// Thread safety: none.
class SentinelAnswers {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// How long the answer of a silent Sentinel counts. One that was removed must be forgotten some
  /// time, even if the master that it named still answers.
  static constexpr std::chrono::minutes kKept{10};

  explicit SentinelAnswers(std::size_t sentinels) : answers_(sentinels) {}

  /// A Sentinel names a master. Returns the Sentinel whose answer counts now.
  std::size_t note_answer(std::size_t sentinel, NamedMaster named, TimePoint now);
  /// A Sentinel cannot be reached or does not say where the master is.
  void note_silence(std::size_t sentinel, TimePoint now);
  /// A Sentinel answers that it knows no such master.
  void forget(std::size_t sentinel) { answers_[sentinel].reset(); }
  /// The master that counts is unreachable or is no master. That it counted before says nothing any
  /// more, and the answers of silent Sentinels are forgotten.
  void doubt();
  /// The Sentinel must be one whose answer is known.
  [[nodiscard]] const NamedMaster& answer(std::size_t sentinel) const {
    return answers_[sentinel]->named;
  }

 private:
  struct SentinelAnswer {
    NamedMaster named;
    std::uint64_t at = 0;  // grows with each answer
    std::optional<TimePoint> silent_since;
  };

  [[nodiscard]] std::size_t count_of(const SentinelAnswer& answer) const;

  std::vector<std::optional<SentinelAnswer>> answers_;
  std::uint64_t taken_ = 0;
  std::string counting_;  // the address that counted last
};

}  // namespace fcap::redis
