#include "memory/steady_state.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcap/redis_options.h>
#include <fcap/store.h>

#include "base/clock.h"
#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"
#include "memory/session_life.h"
#include "path/population.h"
#include "peers/command_words.h"
#include "updater/compaction/record_compactor.h"
#include "updater/compaction/written_users.h"

namespace fcap::bench {
namespace {

using updater::RecordCompactor;
using updater::WrittenUsers;

// How far the clock jumps at a time: what becomes due meanwhile is compacted that much later.
constexpr std::chrono::milliseconds kStep{60'000};
constexpr std::chrono::milliseconds kQuietAfter{60'000};
constexpr std::chrono::seconds kPatience{30};
constexpr std::size_t kAppendsATime = 1000;

class Append final : public StoreCompletion {
 public:
  explicit Append(std::atomic<std::size_t>& pending) : pending_(pending) {}
  void complete(const StoreOutcome& outcome) noexcept override {
    passed = outcome.code == StoreCode::kOk;
    length_bytes = outcome.length_bytes;
    if (pending_.fetch_sub(1) == 1) pending_.notify_one();
  }
  bool passed = false;
  std::size_t length_bytes = 0;

 private:
  std::atomic<std::size_t>& pending_;
};

class SteadyLife {
 public:
  SteadyLife(RedisConsole& console, std::size_t users)
      : console_(console),
        campaigns_(campaign_ids(Population{}.campaigns)),
        users_(user_ids(users)),
        // The store's expiries are real, so the life ends now.
        begin_(base::wall_now() - kLifeLength),
        written_({.users_max = users}),
        store_(make_store(console)),
        compactor_(
            *store_, {}, [this] { return now_; }, metrics_,
            [this](const RecordCompactor::Done& done) { compacted(done); }) {}

  SteadyState run(std::chrono::hours lived) {
    const std::vector<LifeEvent> events = session_life(users_.size());
    const std::int64_t length_ms = std::chrono::milliseconds(kLifeLength).count();
    const std::int64_t from_ms = length_ms - std::chrono::milliseconds(lived).count();
    const auto lived_from =
        std::partition_point(events.begin(), events.end(),
                             [&](const LifeEvent& event) { return event.time_ms < from_ms; });
    write_compacted({events.begin(), lived_from});
    auto next = lived_from;
    for (std::int64_t until = from_ms; until < length_ms;) {
      until = std::min(until + kStep.count(), length_ms);
      now_ = begin_ + std::chrono::milliseconds(until);
      const auto first = next;
      while (next != events.end() && next->time_ms < until) ++next;
      append({first, next});
      compact_due();
    }
    state_.open_tails = written_.size();
    return state_;
  }

 private:
  static std::unique_ptr<Store> make_store(const RedisConsole& console) {
    RedisOptions options;
    options.addresses = {console.address()};
    options.database = console.database();
    auto made = make_redis_store(std::move(options));
    if (!made.ok()) throw std::runtime_error(made.status().text());
    return std::move(made).value();
  }

  [[nodiscard]] WrittenUsers::Clock::time_point clock() const {
    return WrittenUsers::Clock::time_point(now_ - begin_);
  }

  [[nodiscard]] ledger::Entry entry_of(const LifeEvent& event) const {
    return {.time = begin_ + std::chrono::milliseconds(event.time_ms),
            .campaign = ledger::id_hash(campaigns_[event.campaign]),
            .creative = 0,
            .type = EventType::kImpression,
            .fingerprint = event.fingerprint};
  }

  void write_compacted(std::span<const LifeEvent> events) {
    std::map<std::uint32_t, ledger::Ledger> ledgers;
    for (const LifeEvent& event : events) ledgers[event.user].merge(entry_of(event));
    std::string wire;
    std::uint32_t commands = 0;
    for (const auto& [user, ledger] : ledgers) {
      ledger::user_key("fcap", users_[user], key_);
      const std::string record = ledger::compact(ledger, {}, {}).record;
      redis::append_command(wire, {"SET", key_, record, "EX", kRetentionS});
      if (++commands < kAppendsATime) continue;
      console_.run(std::move(wire), std::exchange(commands, 0));
      wire.clear();
    }
    console_.run(std::move(wire), commands);
  }

  void append(std::span<const LifeEvent> events) {
    for (; events.size() > kAppendsATime; events = events.subspan(kAppendsATime)) {
      append_together(events.first(kAppendsATime));
    }
    append_together(events);
  }

  void append_together(std::span<const LifeEvent> events) {
    std::atomic<std::size_t> pending{events.size()};
    std::vector<std::unique_ptr<Append>> appends;
    for (const LifeEvent& event : events) {
      const ledger::Entry entry = entry_of(event);
      bytes_.clear();
      ledger::append_entries({&entry, 1}, bytes_);
      ledger::user_key("fcap", users_[event.user], key_);
      appends.push_back(std::make_unique<Append>(pending));
      store_->append(key_, bytes_, entry.time + kRetention, deadline(), *appends.back());
    }
    while (const std::size_t left = pending.load()) pending.wait(left);
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (!appends[i]->passed) throw std::runtime_error("an append failed");
      ledger::user_key("fcap", users_[events[i].user], key_);
      if (written_.note(key_, appends[i]->length_bytes, bytes_.size(), clock()) ==
          WrittenUsers::Verdict::kDue) {
        due_.push_back(key_);
      }
    }
    state_.events += events.size();
  }

  void compact_due() {
    while (written_.take_quiet(clock() - kQuietAfter, key_)) due_.push_back(key_);
    const auto until = deadline();
    while (!due_.empty() || compactor_.in_flight() > 0) {
      while (!due_.empty() && !compactor_.full()) {
        compactor_.start(due_.back());
        due_.pop_back();
      }
      compactor_.wait(until);
      compactor_.pump();
      if (std::chrono::steady_clock::now() > until) throw std::runtime_error("compaction hangs");
    }
  }

  void compacted(const RecordCompactor::Done& done) {
    if (done.outcome == RecordCompactor::Outcome::kCompacted) ++state_.compactions;
  }

  static std::chrono::steady_clock::time_point deadline() {
    return std::chrono::steady_clock::now() + kPatience;
  }

  RedisConsole& console_;
  const std::vector<std::string> campaigns_;
  const std::vector<std::string> users_;
  const Instant begin_;
  Instant now_;
  SteadyState state_;
  WrittenUsers written_;
  std::vector<std::string> due_;
  std::string key_;
  std::string bytes_;
  updater::Metrics metrics_;
  std::unique_ptr<Store> store_;
  RecordCompactor compactor_;
};

}  // namespace

SteadyState live_to_steady_state(RedisConsole& console, std::size_t users,
                                 std::chrono::hours lived) {
  return SteadyLife(console, users).run(lived);
}

}  // namespace fcap::bench
