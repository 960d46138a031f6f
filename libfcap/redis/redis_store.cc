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
    begin(pools_.gets, done, [&](GetOperation& operation) {
      operation.patient = patient_;
      operation.start(key, deadline, done);
    });
  }

  void get_maybe_stale(std::string_view key, Deadline deadline,
                       StoreCompletion& done) noexcept override {
    begin(pools_.gets, done, [&](GetOperation& operation) {
      operation.patient = patient_;
      if (client_.may_read_replicas()) return operation.start_maybe_stale(key, deadline, done);
      operation.start_joining(key, deadline, done);
    });
  }

  [[nodiscard]] bool read(std::string_view key, Deadline deadline,
                          StoreCompletion& done) noexcept override {
    return client_.read(key, deadline, done);
  }
  void stop_reads() noexcept override { client_.stop_reads(); }

  [[nodiscard]] DirectReads* direct_reads() noexcept override { return this; }

  void append(std::string_view key, std::string_view bytes, Instant expire_at, Deadline deadline,
              StoreCompletion& done) noexcept override {
    begin(pools_.appends, done, [&](AppendsOperation& operation) {
      operation.begin(&done, nullptr);
      operation.patient = patient_;
      operation.add({.key = key, .bytes = bytes, .expire_at = expire_at}, 0);
      operation.start(slot_of(key), deadline);
    });
  }

  void append_note(std::string_view key, std::string_view bytes, Instant expire_at,
                   Deadline deadline, StoreCompletion& done) noexcept override {
    begin(pools_.appends, done, [&](AppendsOperation& operation) {
      operation.begin(&done, nullptr);
      operation.add_note({.key = key, .bytes = bytes, .expire_at = expire_at});
      operation.start(slot_of(key), deadline);
    });
  }

  void append_all(std::span<const Append> appends, Deadline deadline,
                  StoreListCompletion& done) noexcept override {
    if (client_.is_cluster()) return append_routes(appends, deadline, done);
    const std::size_t connections_per_node = client_.connections_per_node();
    for (std::size_t lane = 0; lane < connections_per_node; ++lane)
      append_lane(appends, lane, deadline, done);
  }

  void compare_and_set(const CompareAndSet& change, Deadline deadline,
                       StoreCompletion& done) noexcept override {
    begin(pools_.compare_and_sets, done, [&](CompareAndSetOperation& operation) {
      operation.patient = patient_;
      operation.start(change, deadline, done);
    });
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
  // A lane is one of the connections to the server: appends whose keys go over the same one can
  // share an operation.
  void append_lane(std::span<const Append> appends, std::size_t lane, Deadline deadline,
                   StoreListCompletion& done) noexcept {
    const std::size_t connections_per_node = client_.connections_per_node();
    AppendsOperation* operation = nullptr;
    for (std::size_t i = 0; i < appends.size(); ++i) {
      if (connections_per_node > 1 && slot_of(appends[i].key) % connections_per_node != lane)
        continue;
      add(operation, appends[i], i, done);
      if (operation == nullptr || !operation->full()) continue;
      std::exchange(operation, nullptr)->start(static_cast<std::uint16_t>(lane), deadline);
    }
    if (operation != nullptr) operation->start(static_cast<std::uint16_t>(lane), deadline);
  }

  // In a cluster: the operation for all appends of one Client::route_of().
  struct AppendRoute {
    std::size_t number;
    std::uint16_t slot;
    AppendsOperation* operation;
  };
  // append_all() in a cluster.
  void append_routes(std::span<const Append> appends, Deadline deadline,
                     StoreListCompletion& done) noexcept {
    std::vector<AppendRoute> routes;
    for (std::size_t i = 0; i < appends.size(); ++i) {
      AppendRoute* const route = route_of(slot_of(appends[i].key), routes);
      if (route == nullptr) {
        done.complete(i, kNoMemory);
        continue;
      }
      add(route->operation, appends[i], i, done);
      if (route->operation != nullptr && route->operation->full())
        std::exchange(route->operation, nullptr)->start(route->slot, deadline);
    }
    for (const AppendRoute& route : routes) {
      if (route.operation != nullptr) route.operation->start(route.slot, deadline);
    }
  }

  // Null: no memory.
  [[nodiscard]] AppendRoute* route_of(std::uint16_t slot,
                                      std::vector<AppendRoute>& routes) const noexcept {
    const std::size_t number = client_.route_of(slot);
    const auto route = std::ranges::find(routes, number, &AppendRoute::number);
    if (route != routes.end()) return &*route;
    try {
      routes.push_back({number, slot, nullptr});
      return &routes.back();
    } catch (...) {
      return nullptr;
    }
  }

  static constexpr StoreOutcome kNoMemory{.code = StoreCode::kOverloaded};

  // `start` throws only as long as it has not submitted the operation, which is its last step.
  template <typename Operation, typename Start>
  void begin(FreeList<Operation>& free, StoreCompletion& done, const Start& start) noexcept {
    Operation* operation = free.take();
    try {
      if (operation == nullptr) operation = new Operation(client_, pools_);
      start(*operation);
    } catch (...) {  // no memory
      if (operation != nullptr) free.give(operation);
      done.complete(kNoMemory);
    }
  }

  // Adds it to the operation, which is made if it is null. Out of memory, what that has ends with
  // it, and it is null again.
  void add(AppendsOperation*& operation, const Append& append, std::size_t index,
           StoreListCompletion& done) noexcept {
    try {
      if (operation == nullptr) {
        operation = pools_.appends.take();
        if (operation == nullptr) operation = new AppendsOperation(client_, pools_);
        operation->begin(nullptr, &done);
      }
      operation->add(append, index);
    } catch (...) {
      if (operation != nullptr) {
        std::exchange(operation, nullptr)->on_done(TransportCode::kOverloaded);
      }
      done.complete(index, kNoMemory);
    }
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
