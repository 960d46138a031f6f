#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <fcap/store.h>

#include "base/clock.h"
#include "harness/redis_console.h"
#include "ledger/encode.h"
#include "ledger/user_key.h"
#include "path/population.h"
#include "support/store_calls.h"
#include "updater/compaction/record_compactor.h"
#include "updater/compaction/written_users.h"

namespace fcap::bench {

using std::chrono::milliseconds;
using updater::RecordCompactor;
using updater::WrittenUsers;

inline constexpr std::chrono::days kLifeLength{30};

struct SteadyState {
  std::size_t events = 0;       ///< appended one by one
  std::size_t compactions = 0;  ///< of records that had grown or whose users had become quiet
  std::size_t open_tails = 0;   ///< users whose last events are not compacted in the end
};

// How far the clock jumps at a time: what becomes due meanwhile is compacted that much later.
inline constexpr milliseconds kStep{60'000};
inline constexpr milliseconds kQuietAfter{60'000};
inline constexpr std::chrono::seconds kPatience{30};
inline constexpr std::ptrdiff_t kAppendsATime = 1000;

// One impression of one user.
struct LifeEvent {
  milliseconds time;  // since the life's begin
  std::size_t user = 0;
  std::uint32_t fingerprint = 0;
  std::size_t campaign = 0;
};

// Ordered by time. What a session has left when the days end lies at their begin, so that at any
// instant as many are under way.
inline std::vector<LifeEvent> session_life(std::size_t users) {
  constexpr std::size_t kImpressionsPerSession = 6;
  constexpr std::size_t kImpressions = 5 * kImpressionsPerSession;
  constexpr std::uint64_t kGapMinMs = 5'000;
  constexpr std::uint64_t kGapSpreadMs = 50'000;
  constexpr milliseconds kLength = kLifeLength;
  std::vector<LifeEvent> events;
  events.reserve(users * kImpressions);
  for (std::size_t user = 0; user < users; ++user) {
    std::mt19937_64 random(user);
    std::array<std::size_t, kImpressions> campaigns{};
    for (std::size_t i = 0; i < kImpressions; ++i) campaigns[i] = i % Population{}.campaigns;
    std::ranges::shuffle(campaigns, random);
    milliseconds time{};
    for (std::size_t i = 0; i < kImpressions; ++i) {
      const bool begins = i % kImpressionsPerSession == 0;
      time = begins ? milliseconds(random() % kLength.count())
                    : time + milliseconds(kGapMinMs + random() % kGapSpreadMs);
      events.push_back({.time = time % kLength,
                        .user = user,
                        .fingerprint = static_cast<std::uint32_t>(random()),
                        .campaign = campaigns[i]});
    }
  }
  std::ranges::sort(events, {},
                    [](const LifeEvent& event) { return std::tuple(event.time, event.user); });
  return events;
}

/// Lets a population live for thirty days and leaves Redis as the updater would: every event
/// appended, a record compacted when its tail has grown or its user has been quiet for a minute, by
/// the updater's own code on a clock that runs ahead. Users come in bursts: five sessions each, at
/// any time, of six impressions 5 to 55 s apart, three of each of ten campaigns in the end.
///
/// Of the days only the last `lived` are gone through event by event; what came before is written
/// compacted. Quiet again but for those whose session is under way.
class SteadyLife {
 public:
  SteadyLife(RedisConsole& console, std::size_t users)
      : console_(console),
        users_(users),
        written_({.users_max = users}),
        store_(make_redis_store(console.options()).value()),
        compactor_(
            *store_, {}, [this] { return now_; }, metrics_,
            [this](const RecordCompactor::Done& done) {
              if (done.outcome == RecordCompactor::Outcome::kCompacted) ++state_.compactions;
            }) {}

  SteadyState run(std::chrono::hours lived) {
    const std::vector<LifeEvent> events = session_life(users_);
    const milliseconds from = kLifeLength - lived;
    auto next = std::ranges::lower_bound(events, from, {}, &LifeEvent::time);
    write_compacted({events.begin(), next});
    for (milliseconds until = from; until < kLifeLength;) {
      until = std::min<milliseconds>(until + kStep, kLifeLength);
      now_ = begin_ + until;
      while (next != events.end() && next->time < until) {
        const auto first = next;
        while (next != events.end() && next->time < until && next - first < kAppendsATime) ++next;
        append({first, next});
      }
      compact_due();
    }
    state_.open_tails = written_.size();
    return state_;
  }

 private:
  [[nodiscard]] WrittenUsers::Clock::time_point clock() const {
    return WrittenUsers::Clock::time_point(now_ - begin_);
  }

  [[nodiscard]] ledger::Entry entry_of(const LifeEvent& event) const {
    return bench::entry_of({begin_ + event.time, campaigns_[event.campaign], event.fingerprint});
  }

  void write_compacted(std::span<const LifeEvent> events) {
    std::map<std::size_t, ledger::Ledger> ledgers;
    for (const LifeEvent& event : events) ledgers[event.user].merge(entry_of(event));
    send_users(console_, users_, [&](std::string& wire, std::size_t user) {
      return append_record(wire, "fcap", user, compacted_record(ledgers[user]));
    });
  }

  void append(std::span<const LifeEvent> events) {
    std::deque<testing::WaitingCompletion> appends;
    for (const LifeEvent& event : events) {
      const ledger::Entry entry = entry_of(event);
      bytes_.clear();
      ledger::append_entries({&entry, 1}, bytes_);
      ledger::user_key("fcap", user_id(event.user), key_);
      store_->append(key_, bytes_, entry.time + kRetention, deadline(), appends.emplace_back());
    }
    for (const LifeEvent& event : events) {
      const testing::OwnedOutcome outcome = appends.front().wait();
      appends.pop_front();
      if (outcome.code != StoreCode::kOk) throw std::runtime_error("an append failed");
      ledger::user_key("fcap", user_id(event.user), key_);
      if (written_.note(key_, outcome.length_bytes, bytes_.size(), clock()) ==
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

  static std::chrono::steady_clock::time_point deadline() {
    return std::chrono::steady_clock::now() + kPatience;
  }

  RedisConsole& console_;
  const std::size_t users_;
  const std::vector<std::string> campaigns_ = campaign_ids(Population{}.campaigns);
  // The store's expiries are real, so the life ends now.
  const Instant begin_ = base::wall_now() - kLifeLength;
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

}  // namespace fcap::bench
