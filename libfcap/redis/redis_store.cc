#include "redis/redis_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "redis/direct_reads.h"
#include "redis/store_operations.h"

namespace fcap::redis {
namespace {

class RedisStore final : public Store, public DirectReads {
 public:
  RedisStore(std::shared_ptr<Client> client, StorePools& pools, Deadlines deadlines)
      : client_(*client),
        pools_(pools),
        patient_(deadlines == Deadlines::kProgress),
        owned_client_(std::move(client)) {}

  void get(std::string_view key, Deadline deadline, StoreCompletion& done) noexcept override {
    GetOperation& operation = pooled(pools_.gets);
    operation.patient = patient_;
    operation.start(key, deadline, done);
  }

  void get_maybe_stale(std::string_view key, Deadline deadline,
                       StoreCompletion& done) noexcept override {
    GetOperation& operation = pooled(pools_.gets);
    operation.patient = patient_;
    if (client_.may_read_replicas()) return operation.start_maybe_stale(key, deadline, done);
    operation.start_joining(key, deadline, done);
  }

  [[nodiscard]] bool read(std::string_view key, Deadline deadline,
                          StoreCompletion& done) noexcept override {
    return client_.read(key, deadline, done);
  }
  void stop_reads() noexcept override { client_.stop_reads(); }

  void append(std::string_view key, std::string_view bytes, Instant expire_at, Deadline deadline,
              StoreCompletion& done) noexcept override {
    AppendsOperation& operation = pooled(pools_.appends);
    operation.begin(&done, nullptr);
    operation.patient = patient_;
    operation.add({.key = key, .bytes = bytes, .expire_at = expire_at}, 0);
    operation.start(slot_of(key), deadline);
  }

  void append_note(std::string_view key, std::string_view bytes, Instant expire_at,
                   Deadline deadline, StoreCompletion& done) noexcept override {
    AppendsOperation& operation = pooled(pools_.appends);
    operation.begin(&done, nullptr);
    operation.add_note({.key = key, .bytes = bytes, .expire_at = expire_at});
    operation.start(slot_of(key), deadline);
  }

  void append_all(std::span<const Append> appends, Deadline deadline,
                  StoreListCompletion& done) noexcept override {
    if (client_.is_cluster()) return append_ways(appends, deadline, done);
    const std::size_t lanes = client_.lanes();
    for (std::size_t lane = 0; lane < lanes; ++lane) append_lane(appends, lane, deadline, done);
  }

  void compare_and_set(const CompareAndSet& change, Deadline deadline,
                       StoreCompletion& done) noexcept override {
    CompareAndSetOperation& operation = pooled(pools_.compare_and_sets);
    operation.patient = patient_;
    operation.start(change, deadline, done);
  }

  [[nodiscard]] StoreHealth health() const override { return client_.health(); }

  [[nodiscard]] std::optional<Instant> missing_before() const noexcept override {
    return client_.missing_before();
  }

  [[nodiscard]] std::optional<Instant> record_missing_before(
      std::string_view key) const noexcept override {
    return client_.missing_before(slot_of(key));
  }

  [[nodiscard]] WriteTerms write_terms() const noexcept override { return client_.write_terms(); }

  void expect_config(const ExpectedConfig& expected) override { client_.expect_config(expected); }

 private:
  void append_lane(std::span<const Append> appends, std::size_t lane, Deadline deadline,
                   StoreListCompletion& done) {
    const std::size_t lanes = client_.lanes();
    AppendsOperation* operation = nullptr;
    for (std::size_t i = 0; i < appends.size(); ++i) {
      if (lanes > 1 && slot_of(appends[i].key) % lanes != lane) continue;
      if (operation == nullptr) {
        operation = &pooled(pools_.appends);
        operation->begin(nullptr, &done);
      }
      operation->add(appends[i], i);
      if (!operation->full()) continue;
      std::exchange(operation, nullptr)->start(static_cast<std::uint16_t>(lane), deadline);
    }
    if (operation != nullptr) operation->start(static_cast<std::uint16_t>(lane), deadline);
  }

  // In a cluster.
  void append_ways(std::span<const Append> appends, Deadline deadline, StoreListCompletion& done) {
    struct Way {
      std::size_t number;
      std::uint16_t slot;
      AppendsOperation* operation;
    };
    std::vector<Way> ways;
    for (std::size_t i = 0; i < appends.size(); ++i) {
      const std::uint16_t slot = slot_of(appends[i].key);
      const std::size_t number = client_.way_of(slot);
      auto way = std::ranges::find(ways, number, &Way::number);
      if (way == ways.end()) way = ways.insert(way, {number, slot, nullptr});
      if (way->operation == nullptr) {
        way->operation = &pooled(pools_.appends);
        way->operation->begin(nullptr, &done);
      }
      way->operation->add(appends[i], i);
      if (way->operation->full())
        std::exchange(way->operation, nullptr)->start(way->slot, deadline);
    }
    for (const Way& way : ways) {
      if (way.operation != nullptr) way.operation->start(way.slot, deadline);
    }
  }

  template <typename Operation>
  Operation& pooled(FreeList<Operation>& free) {
    if (Operation* const used = free.take()) return *used;
    return *new Operation(client_, pools_);
  }

  Client& client_;
  StorePools& pools_;
  const bool patient_;
  // Last, so that callbacks during the client's destruction find the rest intact.
  std::shared_ptr<Client> owned_client_;
};

}  // namespace

std::unique_ptr<Store> make_redis_store(std::shared_ptr<Client> client, Deadlines deadlines) {
  // The client may have other owners and outlive the store with operations pending.
  auto pools = std::make_shared<StorePools>(client->operations_max());
  client->keep(pools);
  return std::make_unique<RedisStore>(std::move(client), *pools, deadlines);
}

}  // namespace fcap::redis

namespace fcap {

Result<std::unique_ptr<Store>> make_redis_store(RedisOptions options) {
  auto client = redis::Client::create(std::move(options));
  if (!client.ok()) return client.status();
  return redis::make_redis_store(std::shared_ptr<redis::Client>(std::move(client).value()));
}

}  // namespace fcap
