#include "path/bench_cluster.h"

#include <algorithm>
#include <stdexcept>

#include <fcap/redis_url.h>

#include "harness/redis_console.h"
#include "path/population.h"
#include "support/process.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kUsersATime = 600;
constexpr std::size_t kRecordsMax = 1'000;

}  // namespace

BenchCluster::BenchCluster() {
  for (int node = kShards; node < testing::RedisCluster::kMembers; ++node) servers_.kill(node);
}

RedisOptions BenchCluster::options() const {
  return parse_redis_url(url(), {}).value();
}

int BenchCluster::shard_of(const std::string& user) {
  int shard = 0;
  while (testing::RedisCluster::slots_of(shard).last < redis::slot_of(user)) ++shard;
  return shard;
}

double BenchCluster::number(int shard, const std::string& section, const std::string& field) const {
  const std::string info = servers_.command(shard, {"INFO", section});
  const std::size_t at = info.find("\n" + field + ":");
  if (at == std::string::npos) throw std::runtime_error("INFO has no " + field);
  return std::stod(info.substr(at + field.size() + 2, 40));
}

int BenchCluster::pid(int shard) const {
  return static_cast<int>(number(shard, "server", "process_id"));
}

double BenchCluster::sum(const std::string& section, const std::string& field) const {
  double all = 0;
  for (int shard = 0; shard < kShards; ++shard) all += number(shard, section, field);
  return all;
}

void BenchCluster::load(std::size_t users) {
  auto client = redis::Client::create(options());
  if (!client.ok()) throw std::runtime_error(client.status().text());
  if (!testing::wait_until([&] { return client.value()->connected(); })) {
    throw std::runtime_error(client.value()->last_error());
  }
  std::vector<std::string> records;
  for (std::size_t i = 0; i < std::min(kRecordsMax, users); ++i) records.push_back(usual_record(i));
  std::array<CommandBatch, kShards> batches;
  for (int shard = 0; shard < kShards; ++shard) {
    batches.at(static_cast<std::size_t>(shard)).slot =
        static_cast<std::uint16_t>(testing::RedisCluster::slots_of(shard).first);
  }
  for (std::size_t first = 0; first < users; first += kUsersATime) {
    for (std::size_t i = first; i < std::min(first + kUsersATime, users); ++i) {
      CommandBatch& batch = batches.at(static_cast<std::size_t>(shard_of(user_id(i))));
      batch.command_count += append_record(batch.wire, "fcap", i, records[i % records.size()]);
    }
    std::vector<CommandBatch*> sent;
    for (CommandBatch& batch : batches) {
      if (batch.command_count == 0) continue;
      batch.send(*client.value());
      sent.push_back(&batch);
    }
    for (CommandBatch* batch : sent) batch->wait();
  }
}

}  // namespace fcap::bench
