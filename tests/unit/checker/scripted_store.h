#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcap/store.h>

namespace fcap::checker_test {

/// A store that does what the test says: it holds reads back until the test answers them, or
/// answers at once with a code or from its records.
class ScriptedStore final : public Store {
 public:
  struct Held {
    std::string key;
    Deadline deadline;
    StoreCompletion* done = nullptr;
  };

  /// Answer within get() with this; none: hold reads back.
  std::optional<StoreCode> answer_at_once;
  /// Whether checks are answered as by a replica.
  bool stale = false;
  /// What kOk answers give, by key.
  std::map<std::string, std::string> records;

  void get(std::string_view key, Deadline deadline, StoreCompletion& done) noexcept override {
    get_count.fetch_add(1);
    if (answer_at_once) {
      answer(Held{std::string(key), deadline, &done}, *answer_at_once);
      return;
    }
    const std::lock_guard lock(mutex_);
    held_.push_back({std::string(key), deadline, &done});
  }

  void append(std::string_view, std::string_view, Instant, Deadline,
              StoreCompletion& done) noexcept override {
    done.complete({.code = StoreCode::kUnavailable});
  }
  void compare_and_set(const CompareAndSet&, Deadline, StoreCompletion& done) noexcept override {
    done.complete({.code = StoreCode::kUnavailable});
  }

  [[nodiscard]] std::optional<Instant> missing_before() const noexcept override { return missing; }
  std::optional<Instant> missing;
  [[nodiscard]] std::optional<Instant> record_missing_before(
      std::string_view key) const noexcept override {
    return only_missing_in.empty() || key == only_missing_in ? missing : std::nullopt;
  }
  /// The key of the one record that lacks events; empty: all do.
  std::string only_missing_in;

  /// Takes what is held back now.
  [[nodiscard]] std::vector<Held> take_held() {
    const std::lock_guard lock(mutex_);
    return std::exchange(held_, {});
  }

  /// Waits until that many reads are held back, and takes them.
  [[nodiscard]] std::vector<Held> wait_for_held(std::size_t count) {
    std::vector<Held> taken;
    while (taken.size() < count) {
      for (Held& held : take_held()) taken.push_back(std::move(held));
      if (taken.size() < count) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return taken;
  }

  void answer(const Held& held, StoreCode code) {
    StoreOutcome outcome{.code = code, .stale = stale};
    const auto record = records.find(held.key);
    if (code == StoreCode::kOk && record != records.end()) outcome.record = record->second;
    if (code == StoreCode::kServerError) outcome.text = "ERR of the test";
    held.done->complete(outcome);
  }

  std::atomic<std::size_t> get_count{0};

 private:
  std::mutex mutex_;
  std::vector<Held> held_;
};

}  // namespace fcap::checker_test
