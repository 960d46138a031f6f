#include "report/capacity.h"

#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace fcap::bench {
namespace {

constexpr double kRequestsPerSecond = 500'000;
constexpr double kUsers = 100e6;
constexpr double kCampaignsPerUser = 10;
// Assumed, not measured: how much of a core a shard may use, copies of the data (master and one
// replica), and what the allocator adds to used_memory.
constexpr double kUtilisation = 0.5;
constexpr double kCopies = 2;
constexpr double kFragmentation = 1.15;

struct Cost {
  double client_cpu_us = 0;
  double redis_cpu_us = 0;
  double bytes_per_pair = 0;
};

const Json* row_of(const Json& document, const char* table, const char* row) {
  if (!document["tables"].contains(table)) return nullptr;
  for (const Json& each : document["tables"][table]["rows"]) {
    if (each["name"] == row) return &each;
  }
  return nullptr;
}

std::optional<Cost> cost_of(const Json& document, const char* check_row, const char* memory_row,
                            const char* memory_state) {
  const Json* const check = row_of(document, "check_layouts", check_row);
  const Json* const memory = row_of(document, "memory", memory_row);
  if (check == nullptr || memory == nullptr) return {};
  return Cost{.client_cpu_us = check->value("client_cpu_us", 0.0),
              .redis_cpu_us = check->value("redis_cpu_us", 0.0),
              .bytes_per_pair = memory->value(memory_state, 0.0)};
}

}  // namespace

void add_capacity(Json& document) {
  const auto ledger = cost_of(document, "ledger_mget", "ledger", "steady");
  const auto zset = cost_of(document, "zset", "zset", "fresh");
  if (!ledger || !zset) return;
  Json& table = document["tables"]["capacity"];
  table["title"] = "Capacity: 500,000 requests/s, 100 million users of 10 campaigns each";
  table["note"] = fmt::format(
      "From the numbers above, checks alone. Assumed: shards at {:g} of a core, {:g} copies of the "
      "data, fragmentation {:g}.",
      kUtilisation, kCopies, kFragmentation);
  table["columns"] = {{{"key", "ledger"}, {"title", "ledger, steady"}, {"digits", 1}},
                      {{"key", "zset"}, {"title", "ZSET per user+campaign"}, {"digits", 1}}};
  const auto add = [&](const char* name, const char* title, auto value_of) {
    table["rows"].push_back({{"name", name},
                             {"title", title},
                             {"ledger", value_of(*ledger)},
                             {"zset", value_of(*zset)}});
  };
  const auto redis_cores = [](const Cost& cost) {
    return kRequestsPerSecond * cost.redis_cpu_us / 1e6;
  };
  const auto copy_gb = [](const Cost& cost) {
    return kUsers * kCampaignsPerUser * cost.bytes_per_pair / 1e9;
  };
  add("redis_cores", "Redis cores busy", redis_cores);
  add("redis_shards", "Redis shards, by CPU",
      [&](const Cost& cost) { return std::ceil(redis_cores(cost) / kUtilisation); });
  add("client_cores", "client cores busy",
      [](const Cost& cost) { return kRequestsPerSecond * cost.client_cpu_us / 1e6; });
  add("copy_gb", "memory of one copy, GB", copy_gb);
  add("total_gb", "memory of all copies, fragmented, GB",
      [&](const Cost& cost) { return copy_gb(cost) * kCopies * kFragmentation; });
}

}  // namespace fcap::bench
