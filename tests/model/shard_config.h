#pragma once

// `!config` in the cluster, as an updater's Store reaches it in the model of marks per shard.
#include <functional>
#include <string>
#include <utility>

#include <fcap/store.h>

#include "shard_world.h"

namespace fcap::updater::testing {

class ShardConfig final : public Store {
 public:
  ShardConfig(ShardWorld& world, std::function<bool()> fault)
      : world_(world), fault_(std::move(fault)) {}

  static redis::ConfigRecord record() {
    redis::ConfigRecord record;
    record.key_prefix = "p";
    record.retention = kRetention;
    return record;
  }
  /// The time of a partition's event.
  static Instant time_of(std::int64_t event) { return instant_from_ms(1'700'000'000'000 + event); }
  static constexpr std::chrono::days kRetention{32};

  [[nodiscard]] std::uint64_t connection() const {
    const auto* const holder = world_.config_holder();
    return holder == nullptr ? 0 : holder->epoch;
  }

  void get(std::string_view, Deadline, StoreCompletion& done) noexcept override {
    const auto* const holder = world_.config_holder();
    if (holder == nullptr || fault_()) return done.complete({StoreCode::kUnavailable, {}, 0, {}});
    const auto& config = holder->data.config;
    if (!config) return done.complete({StoreCode::kNotFound, {}, 0, {}});
    done.complete({StoreCode::kOk, *config, 0, {}});
  }
  void compare_and_set(const CompareAndSet& change, Deadline,
                       StoreCompletion& done) noexcept override {
    auto* const holder = world_.config_holder();
    const bool bound_to_other =
        holder != nullptr && change.connection_epoch && *change.connection_epoch != holder->epoch;
    if (holder == nullptr || bound_to_other || fault_()) {
      return done.complete({StoreCode::kUnavailable, {}, 0, {}});
    }
    auto& config = holder->data.config;
    const bool as_expected =
        change.expected ? config && *config == *change.expected : !config.has_value();
    if (as_expected) config = change.desired;
    done.complete({as_expected ? StoreCode::kOk : StoreCode::kConflict, {}, 0, {}});
  }
  void append(std::string_view, std::string_view, Instant, Deadline,
              StoreCompletion& done) noexcept override {
    done.complete({StoreCode::kServerError, {}, 0, "only !config is kept"});
  }
  void append_all(std::span<const Append>, Deadline, StoreListCompletion&) noexcept override {}

 private:
  ShardWorld& world_;
  const std::function<bool()> fault_;
};

}  // namespace fcap::updater::testing
