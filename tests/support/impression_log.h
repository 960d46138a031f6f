#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>

#include "test_paths.h"

namespace fcap::test_log {

/// A banner impression of a log that is sorted by time.
struct LogRow {
  std::string user;
  std::string campaign;
  std::string creative;
  std::int64_t unix_seconds = 0;
};

/// How many of a log's rows the cap "3 per campaign and sliding 24 hours" concerns.
struct LogFigures {
  std::size_t blocked = 0;   ///< where only admitted impressions count
  std::size_t over_cap = 0;  ///< where every impression counts
  friend bool operator==(const LogFigures&, const LogFigures&) = default;
};

/// The real log of data/README.md, which is no part of the repository: FCAP_DATA_DIR, or
/// ../shared/data beside the repository, may hold it.
inline std::filesystem::path real_log_file() {
  const char* given = std::getenv("FCAP_DATA_DIR");  // NOLINT(concurrency-mt-unsafe)
  const std::filesystem::path directory =
      given != nullptr ? std::filesystem::path(given)
                       : std::filesystem::path(FCAP_SOURCE_DIR).parent_path() / "shared" / "data";
  return directory / "open_bandit_zozotown_40k.csv.gz";
}

inline bool has_real_log() {
  return std::filesystem::exists(real_log_file());
}

inline std::vector<LogRow> read_real_log() {
  const auto file = gzopen(real_log_file().c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + real_log_file().string());
  std::array<char, 1024> line{};
  std::vector<LogRow> rows;
  gzgets(file, line.data(), line.size());  // the header
  while (gzgets(file, line.data(), line.size()) != nullptr) {
    const std::string text = line.data();
    const auto campaign = text.find(',') + 1;
    const auto creative = text.find(',', campaign) + 1;
    const auto time = text.find(',', creative) + 1;
    LogRow row{.user = text.substr(0, campaign - 1),
               .campaign = text.substr(campaign, creative - 1 - campaign),
               .creative = text.substr(creative, time - 1 - creative)};
    std::from_chars(text.data() + time, text.data() + text.size(), row.unix_seconds);
    rows.push_back(std::move(row));
  }
  gzclose(file);
  return rows;
}

/// A log of the real one's shape, always the same: 40,000 rows of six days, a few users with very
/// many impressions and many with few, 80 campaigns.
inline std::vector<LogRow> generated_log() {
  constexpr int kRows = 40'000;
  constexpr std::int64_t kBegin = 1'574'553'600;
  constexpr std::int64_t kSeconds = 6 * 86'400;
  constexpr double kUsers = 317;
  constexpr double kCampaigns = 80;
  std::mt19937_64 random(20'191'124);
  const auto fraction = [&] { return static_cast<double>(random() >> 11U) * 0x1p-53; };
  // A product of draws: a few have very many of the rows, and most have few.
  const auto one_of = [&](double count, int skew) {
    double place = fraction();
    for (int i = 1; i < skew; ++i) place *= fraction() + 0.2;
    return static_cast<int>(count * std::min(place, 0.999));
  };
  std::vector<LogRow> rows;
  rows.reserve(kRows);
  for (int i = 0; i < kRows; ++i) {
    const int user = one_of(kUsers, 6);
    const int campaign = one_of(kCampaigns, 4);
    rows.push_back({.user = "cohort" + std::to_string(user),
                    .campaign = (campaign % 2 == 0 ? "men-" : "women-") + std::to_string(campaign),
                    .creative = "pos" + std::to_string(1 + i % 3),
                    .unix_seconds = kBegin + kSeconds * i / kRows});
  }
  return rows;
}

inline std::vector<LogRow> impression_log() {
  return has_real_log() ? read_real_log() : generated_log();
}

/// Counted row by row, by nothing but the sentence that says what the cap means.
inline LogFigures count_figures(const std::vector<LogRow>& rows) {
  constexpr std::int64_t kWindow = 86'400;
  constexpr std::size_t kLimit = 3;
  struct Seen {
    std::vector<std::int64_t> admitted;
    std::vector<std::int64_t> all;
  };
  const auto within = [](const std::vector<std::int64_t>& times, std::int64_t now) {
    std::size_t count = 0;
    for (auto at = times.rbegin(); at != times.rend() && *at > now - kWindow; ++at) ++count;
    return count;
  };
  std::map<std::pair<std::string, std::string>, Seen> seen;
  LogFigures figures;
  for (const LogRow& row : rows) {
    Seen& of = seen[{row.user, row.campaign}];
    if (within(of.admitted, row.unix_seconds) >= kLimit) {
      ++figures.blocked;
    } else {
      of.admitted.push_back(row.unix_seconds);
    }
    if (within(of.all, row.unix_seconds) >= kLimit) ++figures.over_cap;
    of.all.push_back(row.unix_seconds);
  }
  return figures;
}

}  // namespace fcap::test_log
