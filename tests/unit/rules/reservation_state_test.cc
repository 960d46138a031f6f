#include "rules/reservation_state.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace fcap::rules {
namespace reservation_state_test {

// An entry's fingerprint that counts how often it is compared.
struct CountedPrint {
  std::uint32_t print = 0;
  std::size_t* compared = nullptr;

  friend bool operator==(const CountedPrint& entry, std::uint32_t wanted) {
    ++*entry.compared;
    return entry.print == wanted;
  }
  friend bool operator<(std::uint32_t wanted, const CountedPrint& entry) {
    ++*entry.compared;
    return wanted < entry.print;
  }
};

struct Matching {
  std::size_t compared = 0;
  std::size_t found = 0;
};

// What it takes to match as many reservations with as many entries, each with its own or none with
// any. Entries stand in the order of their times.
Matching match(std::uint32_t count, bool confirmed) {
  Matching matching;
  std::vector<ledger::Reservation> reservations(count);
  std::vector<CountedPrint> prints(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    reservations[i].event.fingerprint = 2 * i;
    prints[i] = {2 * (count - 1 - i) + (confirmed ? 0 : 1), &matching.compared};
  }
  match_entries(
      std::span<const ledger::Reservation>(reservations), count,
      std::span<const CountedPrint>(prints), [](const ledger::Reservation&) { return true; },
      [&](std::size_t reservation, std::size_t entry) {
        ++matching.found;
        EXPECT_EQ(reservations[reservation].event.fingerprint, prints[entry].print);
      });
  return matching;
}

// Whoever can write to Redis can make a record of nothing else.
TEST(MatchEntries, TakesNLogNComparisonsWhateverIsInARecord) {
  for (const std::uint32_t count : {9U, 100U, 1'000U, 2'000U, 20'000U}) {
    const std::size_t steps = std::bit_width(count) + 1U;  // of a search, and of what it finds
    for (const bool confirmed : {false, true}) {
      const Matching matching = match(count, confirmed);
      EXPECT_LE(matching.compared, count * steps) << count;
      EXPECT_EQ(matching.found, confirmed ? count : 0) << count;
    }
  }
}

// A walk for each costs less than to search for every entry.
TEST(MatchEntries, AFewAreWalkedFor) {
  EXPECT_EQ(match(8, false).compared, 64U);
  EXPECT_EQ(match(8, true).found, 8U);
}

}  // namespace reservation_state_test
}  // namespace fcap::rules
