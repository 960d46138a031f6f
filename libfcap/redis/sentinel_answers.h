#pragma once

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

/// The answers of the Sentinels that answer, and which of them counts: that of the highest
/// config-epoch, which each failover raises and by which Sentinels themselves settle who is right.
/// Of answers with one epoch, and where some Sentinel does not tell its epoch, the master that most
/// name counts, then the one that counted before, then the one named last. Free of clocks and I/O.
///
/// Thread safety: none.
class SentinelAnswers {
 public:
  explicit SentinelAnswers(std::size_t sentinels) : answers_(sentinels) {}

  /// Takes what a Sentinel has said. Returns the Sentinel whose answer counts now.
  std::size_t take(std::size_t sentinel, NamedMaster named);
  /// A Sentinel does not answer, or names no master.
  void forget(std::size_t sentinel) { answers_[sentinel].reset(); }
  /// The master that counts is unreachable or is no master: that it counted before says nothing.
  void doubt() { counting_.clear(); }
  /// Of one that has answered.
  [[nodiscard]] const NamedMaster& answer(std::size_t sentinel) const {
    return answers_[sentinel]->named;
  }

 private:
  struct Answer {
    NamedMaster named;
    std::uint64_t at = 0;  // grows with each answer
  };

  [[nodiscard]] std::size_t count_of(const Answer& answer) const;

  std::vector<std::optional<Answer>> answers_;
  std::uint64_t taken_ = 0;
  std::string counting_;  // the address that counted last
};

}  // namespace fcap::redis
