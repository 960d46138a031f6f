#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/store.h>

namespace fcap::testing {

/// An outcome that owns what it shows.
struct OwnedOutcome {
  StoreCode code = StoreCode::kOk;
  std::string record;
  std::size_t length_bytes = 0;
  std::string text;
};

/// Waits for one operation. It must be waited for before it goes.
class WaitingCompletion final : public StoreCompletion {
 public:
  void complete(const StoreOutcome& outcome) noexcept override {
    const std::lock_guard lock(mutex_);
    outcome_ = OwnedOutcome{outcome.code, std::string(outcome.record), outcome.length_bytes,
                            std::string(outcome.text)};
    done_.notify_all();
  }

  OwnedOutcome wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return outcome_.has_value(); });
    return *outcome_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<OwnedOutcome> outcome_;
};

/// A Store's operations, one at a time, blocking.
class StoreCalls {
 public:
  explicit StoreCalls(Store& store,
                      std::chrono::milliseconds deadline = std::chrono::milliseconds{30'000})
      : store_(store), deadline_(deadline) {}

  OwnedOutcome get(std::string_view key) {
    WaitingCompletion done;
    store_.get(key, due(), done);
    return done.wait();
  }

  OwnedOutcome append(std::string_view key, std::string_view bytes, Instant expire_at) {
    WaitingCompletion done;
    store_.append(key, bytes, expire_at, due(), done);
    return done.wait();
  }

  OwnedOutcome compare_and_set(std::string_view key, std::optional<std::string_view> expected,
                               std::string_view desired, Instant expire_at) {
    WaitingCompletion done;
    store_.compare_and_set({key, expected, desired, expire_at}, due(), done);
    return done.wait();
  }

 private:
  [[nodiscard]] Store::Deadline due() const { return std::chrono::steady_clock::now() + deadline_; }

  Store& store_;
  std::chrono::milliseconds deadline_;
};

}  // namespace fcap::testing
