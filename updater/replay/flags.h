#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fcap/time.h>

namespace fcap::updater {

/// An end of the range by offset: of every partition, or of single ones.
struct OffsetFlag {
  std::optional<std::int64_t> everywhere;
  std::map<std::int32_t, std::int64_t> of_partition;
};

struct ReplayFlags {
  std::optional<Instant> from_time;
  std::optional<Instant> to_time;
  OffsetFlag from_offset;
  OffsetFlag to_offset;
  std::vector<std::int32_t> partitions;
  double messages_per_second = 0;
  std::int64_t redis_bytes_max = 0;
  std::string group_id;
  bool resume = false;
};

}  // namespace fcap::updater
