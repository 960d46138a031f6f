#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "ledger/encode.h"
#include "ledger/ledger.h"
#include "tests/support/seed.h"

namespace fcap::ledger {

/// How a failed expectation prints an entry.
inline void PrintTo(const Entry& entry, std::ostream* out) {
  *out << "{t=" << to_ms(entry.time) << " c=" << entry.campaign << " cr=" << entry.creative
       << " type=" << static_cast<int>(entry.type) << " fp=" << entry.fingerprint << "}";
}

namespace testing {

/// What a Ledger must hold, by brute force: one map from identity to the winning entry.
class Reference {
 public:
  void add(const Entry& entry);
  void erase_before(Instant until);

  /// In the order of a Ledger's columns, erased entries left out.
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  std::map<std::tuple<std::uint64_t, EventType, std::uint32_t>, Entry> winners_;
  std::optional<Instant> erased_before_;
};

/// The ledger's entries in the order of its columns; checks that runs and columns agree.
std::vector<Entry> entries_of(const Ledger& ledger);

Ledger decoded(std::string_view record);

/// A record made of appended entries alone.
std::string tail_of(const std::vector<Entry>& entries);

struct HistoryShape {
  std::size_t entries = 40;
  std::uint64_t campaigns = 8;
  std::uint64_t creatives = 5;  ///< 0: none
  unsigned types = 4;
  Instant first = instant_from_ms(1'700'000'000'000);
  std::chrono::milliseconds span = std::chrono::days{32};
  /// So many of ten entries repeat an earlier identity, with the same or another time.
  int repeats_of_ten = 3;
};

std::vector<Entry> random_history(std::mt19937_64& random, const HistoryShape& shape);

/// A shape in which something is special: few or many entries, one campaign, wide or no spans.
HistoryShape random_shape(std::mt19937_64& random);

std::string from_hex(std::string_view hex);
std::string to_hex(std::string_view bytes);

}  // namespace testing
}  // namespace fcap::ledger
