#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>

namespace fcap {

/// What FCAP_TEST_SEED says: the seed of a run of random tests that is to be repeated.
inline std::optional<std::uint64_t> given_seed() {
  const char* text = std::getenv("FCAP_TEST_SEED");  // NOLINT(concurrency-mt-unsafe)
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

/// The seed of a random test: the given one, else `usual`, else a new one. The first call prints
/// it.
inline std::uint64_t test_seed(std::optional<std::uint64_t> usual = std::nullopt) {
  static const std::uint64_t fresh = std::random_device{}();
  const std::uint64_t seed = given_seed().value_or(usual.value_or(fresh));
  [[maybe_unused]] static const bool printed = [seed] {
    std::cout << "FCAP_TEST_SEED=" << seed << std::endl;
    return true;
  }();
  return seed;
}

}  // namespace fcap
