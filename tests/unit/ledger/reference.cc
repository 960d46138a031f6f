#include "unit/ledger/reference.h"

#include <algorithm>
#include <charconv>

#include <gtest/gtest.h>

namespace fcap::ledger::testing {

using std::chrono::milliseconds;

void Reference::add(const Entry& entry) {
  const auto identity = std::tuple(entry.campaign, entry.type, entry.fingerprint);
  const auto [found, added] = winners_.try_emplace(identity, entry);
  if (added) return;
  Entry& winner = found->second;
  if (entry.time > winner.time || (entry.time == winner.time && entry.creative > winner.creative)) {
    winner = entry;
  }
}

void Reference::erase_before(Instant until) {
  erased_before_ = erased_before_ ? std::max(*erased_before_, until) : until;
}

std::vector<Entry> Reference::entries() const {
  std::vector<Entry> entries;
  for (const auto& [identity, entry] : winners_) {
    if (!erased_before_ || entry.time > *erased_before_) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tuple(a.campaign, a.type, a.time, a.fingerprint) <
           std::tuple(b.campaign, b.type, b.time, b.fingerprint);
  });
  return entries;
}

std::vector<Entry> entries_of(const Ledger& ledger) {
  EXPECT_EQ(ledger.times().size(), ledger.size());
  EXPECT_EQ(ledger.creatives().size(), ledger.size());
  EXPECT_EQ(ledger.fingerprints().size(), ledger.size());
  std::vector<Entry> entries;
  std::uint32_t next = 0;
  for (const Run& run : ledger.runs()) {
    EXPECT_EQ(run.begin, next);
    EXPECT_LT(run.begin, run.end);
    next = run.end;
    for (std::uint32_t i = run.begin; i < run.end; ++i) entries.push_back(ledger.entry(run, i));
  }
  EXPECT_EQ(next, ledger.size());
  return entries;
}

Ledger decoded(std::string_view record) {
  Ledger ledger;
  EXPECT_EQ(ledger.decode(record), DecodeCode::kOk) << to_hex(record);
  return ledger;
}

std::string tail_of(const std::vector<Entry>& entries) {
  std::string record;
  append_entries(entries, record);
  return record;
}

std::vector<Entry> random_history(std::mt19937_64& random, const HistoryShape& shape) {
  const auto below = [&](std::uint64_t bound) { return bound == 0 ? 0 : random() % bound; };
  const auto random_time = [&] {
    return shape.first + milliseconds(below(static_cast<std::uint64_t>(shape.span.count()) + 1));
  };
  std::vector<Entry> history;
  for (std::size_t i = 0; i < shape.entries; ++i) {
    Entry entry;
    if (!history.empty() && below(10) < static_cast<std::uint64_t>(shape.repeats_of_ten)) {
      entry = history[below(history.size())];
      if (below(2) == 0) entry.time = random_time();
    } else {
      // Spread over all 48 bits, and few enough to meet again.
      entry.campaign = (1 + below(shape.campaigns)) * 0x9E3779B97F4AULL & 0xFFFFFFFFFFFFULL;
      entry.type = static_cast<EventType>(below(shape.types));
      entry.fingerprint = static_cast<std::uint32_t>(random());
      entry.time =
          !history.empty() && below(4) == 0 ? history[below(history.size())].time : random_time();
    }
    if (shape.creatives > 0) {
      entry.creative = below(shape.creatives + 1) * 0xC2B2AE3D27D4ULL & 0xFFFFFFFFFFFFULL;
    }
    history.push_back(entry);
  }
  return history;
}

HistoryShape random_shape(std::mt19937_64& random) {
  HistoryShape shape;
  const std::size_t sizes[] = {0, 1, 2, 5, 15, 16, 17, 18, 40, 120, 400};
  shape.entries = sizes[random() % std::size(sizes)];
  const std::uint64_t campaigns[] = {1, 2, 10, 300};
  shape.campaigns = campaigns[random() % std::size(campaigns)];
  const std::uint64_t creatives[] = {0, 0, 1, 4, 254, 255, 256, 1000};
  shape.creatives = creatives[random() % std::size(creatives)];
  shape.types = 1 + static_cast<unsigned>(random() % 4);
  const milliseconds spans[] = {
      milliseconds{0},       milliseconds{3},        std::chrono::hours{4},
      std::chrono::hours{5}, std::chrono::days{32},  std::chrono::days{49},
      std::chrono::days{50}, std::chrono::days{400}, std::chrono::days{20'000}};
  shape.span = spans[random() % std::size(spans)];
  const std::int64_t firsts[] = {0,
                                 1'699'999'999'001,
                                 1'700'000'000'000,
                                 4'294'967'295'000,
                                 4'294'967'296'000,
                                 (std::int64_t{1} << 47)};
  shape.first = instant_from_ms(firsts[random() % std::size(firsts)]);
  return shape;
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits.push_back(c);
    if (digits.size() < 2) continue;
    unsigned value = 0;
    std::from_chars(digits.data(), digits.data() + 2, value, 16);
    bytes.push_back(static_cast<char>(value));
    digits.clear();
  }
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    hex.push_back(kDigits[byte >> 4U]);
    hex.push_back(kDigits[byte & 0x0FU]);
  }
  return hex;
}

}  // namespace fcap::ledger::testing
