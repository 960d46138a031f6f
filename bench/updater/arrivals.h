#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "path/ids.h"

namespace fcap::bench {

/// One impression. Ids are made from the numbers.
struct Arrival {
  std::int64_t arrived_ms = 0;
  std::int64_t shown_ms = 0;
  std::uint64_t user = 0;
  std::uint64_t campaign = 0;
};

/// Impressions in the order of their arrival, an hour ago, the same for the same numbers. People
/// come in sessions of 1 to 8 pages, 5 to 30 s apart, each showing 1 to 4 impressions. Each
/// impression's beacon takes a time of its own (log-normal: median 1 s, 99th percentile 30 s, cut
/// at a minute), so a page's impressions arrive seconds apart. It starts in the middle of things:
/// with sessions of all ages under way. One impression is much like another; what matters to a
/// writer is how near each other a user's events lie.
std::vector<Arrival> make_arrivals(std::size_t count, std::size_t users);

/// The impression as a message of the topic. `number`: unique within it.
[[nodiscard]] std::string message_of(const Arrival& arrival, std::string_view user_id,
                                     std::uint64_t number);

}  // namespace fcap::bench
