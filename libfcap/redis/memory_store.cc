#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include <fcap/store.h>

#include "base/clock.h"

namespace fcap {

namespace {

// One append of a list, for stores without an operation for lists.
class ListedAppend final : public StoreCompletion {
 public:
  ListedAppend(StoreListCompletion& list, std::size_t index) : list_(list), index_(index) {}
  void complete(const StoreOutcome& outcome) noexcept override {
    list_.complete(index_, outcome);
    delete this;
  }

 private:
  StoreListCompletion& list_;
  std::size_t index_;
};

}  // namespace

Store::~Store() = default;

StoreHealth Store::health() const {
  return {};
}

void Store::expect_config(const ExpectedConfig& /*expected*/) {}

std::optional<Instant> Store::missing_before() const noexcept {
  return std::nullopt;
}

std::optional<Instant> Store::record_missing_before(std::string_view /*key*/) const noexcept {
  return missing_before();
}

redis::DirectReads* Store::direct_reads() noexcept {
  return nullptr;
}

WriteTerms Store::write_terms() const noexcept {
  return {};
}

void Store::append_note(std::string_view key, std::string_view bytes, Instant expire_at,
                        Deadline deadline, StoreCompletion& done) noexcept {
  append(key, bytes, expire_at, deadline, done);
}

void Store::get_maybe_stale(std::string_view key, Deadline deadline,
                            StoreCompletion& done) noexcept {
  get(key, deadline, done);
}

void Store::append_all(std::span<const Append> appends, Deadline deadline,
                       StoreListCompletion& done) noexcept {
  for (std::size_t i = 0; i < appends.size(); ++i) {
    auto* const one = new (std::nothrow) ListedAppend(done, i);
    if (one == nullptr) {
      done.complete(i, {.code = StoreCode::kOverloaded});
      continue;
    }
    append(appends[i].key, appends[i].bytes, appends[i].expire_at, deadline, *one);
  }
}

namespace {

class MemoryStore final : public Store {
 public:
  void get(std::string_view key, Deadline /*deadline*/, StoreCompletion& done) noexcept override {
    std::string record;
    bool found = false;
    {
      const std::lock_guard lock(mutex_);
      if (const StoredRecord* present = find(key)) {
        record = present->bytes;
        found = true;
      }
    }
    done.complete({.code = found ? StoreCode::kOk : StoreCode::kNotFound, .record = record});
  }

  void append(std::string_view key, std::string_view bytes, Instant expire_at,
              Deadline /*deadline*/, StoreCompletion& done) noexcept override {
    std::size_t length_bytes = 0;
    {
      const std::lock_guard lock(mutex_);
      find(key);  // drops it when it has expired
      StoredRecord& record = record_of(key);
      record.bytes += bytes;
      record.expire_at = std::max(record.expire_at, expire_at);
      length_bytes = record.bytes.size();
    }
    done.complete({.code = StoreCode::kOk, .length_bytes = length_bytes});
  }

  void compare_and_set(const CompareAndSet& change, Deadline /*deadline*/,
                       StoreCompletion& done) noexcept override {
    done.complete({.code = exchange(change) ? StoreCode::kOk : StoreCode::kConflict});
  }

  [[nodiscard]] WriteTerms write_terms() const noexcept override {
    return {.reservation_life_max = kDefaultReservationLifeMax};
  }

 private:
  struct StoredRecord {
    std::string bytes;
    Instant expire_at{};
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept {
      return std::hash<std::string_view>{}(key);
    }
  };
  using Records = std::unordered_map<std::string, StoredRecord, Hash, std::equal_to<>>;

  StoredRecord* find(std::string_view key) {
    const auto found = records_.find(key);
    if (found == records_.end()) return nullptr;
    if (found->second.expire_at > base::wall_now()) return &found->second;
    records_.erase(found);
    return nullptr;
  }

  StoredRecord& record_of(std::string_view key) {
    const auto found = records_.find(key);
    if (found != records_.end()) return found->second;
    // Whenever the records have doubled, those that expired unread are dropped.
    if (records_.size() >= sweep_at_) {
      std::erase_if(records_, [at = base::wall_now()](const auto& item) {
        return item.second.expire_at <= at;
      });
      sweep_at_ = std::max(kSweepAtMin, records_.size() * 2);
    }
    return records_[std::string(key)];
  }

  bool exchange(const CompareAndSet& change) {
    const std::lock_guard lock(mutex_);
    const StoredRecord* const present = find(change.key);
    if (change.expected.has_value() != (present != nullptr)) return false;
    std::string desired(change.desired);
    if (present != nullptr && present->bytes != *change.expected) {
      if (!change.keep_appended || !present->bytes.starts_with(*change.expected)) return false;
      desired.append(present->bytes, change.expected->size());
    }
    if (desired.empty()) {
      if (present != nullptr) records_.erase(records_.find(change.key));
      return true;
    }
    StoredRecord& record = record_of(change.key);
    record.bytes = std::move(desired);
    record.expire_at = std::max(record.expire_at, change.expire_at);
    return true;
  }

  static constexpr std::size_t kSweepAtMin = 1024;

  std::mutex mutex_;
  Records records_;                     // guarded by mutex_
  std::size_t sweep_at_ = kSweepAtMin;  // guarded by mutex_
};

}  // namespace

std::unique_ptr<Store> make_memory_store() {
  return std::make_unique<MemoryStore>();
}

}  // namespace fcap
