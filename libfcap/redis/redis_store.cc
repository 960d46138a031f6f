#include "redis/redis_store.h"

#include <utility>

#include "redis/store_operations.h"

namespace fcap::redis {
namespace {

template <typename Operation>
Operation& pooled(FreeList<Operation>& free, Client& client, StorePools& pools) {
  if (Operation* const used = free.take()) return *used;
  return *new Operation(client, pools);
}

class RedisStore final : public Store {
 public:
  explicit RedisStore(std::shared_ptr<Client> client)
      : client_(std::move(client)), pools_(std::make_shared<StorePools>()) {
    // The client may have other owners and outlive this store with operations pending.
    client_->keep(pools_);
  }

  void get(std::string_view key, Deadline deadline, StoreCompletion& done) noexcept override {
    pooled(pools_->gets, *client_, *pools_).start(key, deadline, done);
  }

  void append(std::string_view key, std::string_view bytes, Instant expire_at, Deadline deadline,
              StoreCompletion& done) noexcept override {
    pooled(pools_->appends, *client_, *pools_).start(key, bytes, expire_at, deadline, done);
  }

  void compare_and_set(const CompareAndSet& change, Deadline deadline,
                       StoreCompletion& done) noexcept override {
    pooled(pools_->compare_and_sets, *client_, *pools_).start(change, deadline, done);
  }

 private:
  std::shared_ptr<Client> client_;
  std::shared_ptr<StorePools> pools_;
};

}  // namespace

std::unique_ptr<Store> make_redis_store(std::shared_ptr<Client> client) {
  return std::make_unique<RedisStore>(std::move(client));
}

}  // namespace fcap::redis

namespace fcap {

Result<std::unique_ptr<Store>> make_redis_store(RedisOptions options) {
  auto client = redis::Client::create(std::move(options));
  if (!client.ok()) return client.status();
  return redis::make_redis_store(std::shared_ptr<redis::Client>(std::move(client).value()));
}

}  // namespace fcap
