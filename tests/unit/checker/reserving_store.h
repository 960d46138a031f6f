#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcap/store.h>

namespace fcap::checker_test {

/// A store in memory whose exchanges a test counts and disturbs.
class ReservingStore final : public Store {
 public:
  void get(std::string_view key, Deadline deadline, StoreCompletion& done) noexcept override {
    reads.fetch_add(1);
    if (on_read) on_read();
    if (read_fails) return done.complete({.code = *read_fails});
    memory_->get(key, deadline, done);
  }
  void get_maybe_stale(std::string_view key, Deadline deadline,
                       StoreCompletion& done) noexcept override {
    checks.fetch_add(1);
    memory_->get(key, deadline, done);
  }
  void append(std::string_view key, std::string_view bytes, Instant expire_at, Deadline deadline,
              StoreCompletion& done) noexcept override {
    appends.fetch_add(1);
    if (on_append) on_append();
    if (append_fails) {
      return done.complete({.code = *append_fails, .length_bytes = append_fails_at_bytes});
    }
    memory_->append(key, bytes, expire_at, deadline, done);
  }
  void compare_and_set(const CompareAndSet& change, Deadline deadline,
                       StoreCompletion& done) noexcept override {
    exchanges.fetch_add(1);
    if (const auto before = std::exchange(before_exchange, nullptr)) before();
    const auto lost = std::exchange(lose_answer, std::nullopt);
    if (!lost) return memory_->compare_and_set(change, deadline, done);
    if (lost->is_executed) {
      Ignored ignored;
      memory_->compare_and_set(change, deadline, ignored);
    }
    if (const auto after = std::exchange(after_exchange, nullptr)) after();
    done.complete({.code = lost->code});
  }
  [[nodiscard]] std::optional<Instant> missing_before() const noexcept override { return missing; }
  [[nodiscard]] std::optional<Instant> record_missing_before(
      std::string_view key) const noexcept override {
    return only_missing_in.empty() || key == only_missing_in ? missing : std::nullopt;
  }
  [[nodiscard]] WriteTerms write_terms() const noexcept override { return terms; }

  // --- For the test, on the same thread.

  struct LostAnswer {
    StoreCode code = StoreCode::kTimeout;
    bool is_executed = true;
  };
  std::optional<StoreCode> read_fails;
  std::optional<StoreCode> append_fails;
  /// How long such a record is said to be; 0: the bytes were not written either.
  std::size_t append_fails_at_bytes = 0;
  /// On the thread that asks.
  std::function<void()> on_read;
  std::function<void()> on_append;
  /// What becomes of the next exchange.
  std::optional<LostAnswer> lose_answer;
  /// Another writer, just before the next exchange.
  std::function<void()> before_exchange;
  /// Another writer, just after the next exchange whose answer is lost.
  std::function<void()> after_exchange;
  std::optional<Instant> missing;
  /// The key of the one record that lacks events; empty: all do.
  std::string only_missing_in;
  WriteTerms terms{.reservation_life_max = kDefaultReservationLifeMax};

  std::atomic<int> reads{0};
  std::atomic<int> checks{0};
  std::atomic<int> exchanges{0};
  std::atomic<int> appends{0};

  [[nodiscard]] std::string record(std::string_view user) {
    Kept kept;
    memory_->get(key_of(user), {}, kept);
    return kept.record;
  }
  void add(std::string_view user, std::string_view bytes) {
    Ignored ignored;
    memory_->append(key_of(user), bytes, Instant::max(), {}, ignored);
  }

 private:
  struct Ignored final : StoreCompletion {
    void complete(const StoreOutcome& /*outcome*/) noexcept override {}
  };
  struct Kept final : StoreCompletion {
    void complete(const StoreOutcome& outcome) noexcept override { record = outcome.record; }
    std::string record;
  };
  static std::string key_of(std::string_view user) { return "fcap:{" + std::string(user) + "}"; }

  std::unique_ptr<Store> memory_ = make_memory_store();
};

}  // namespace fcap::checker_test
