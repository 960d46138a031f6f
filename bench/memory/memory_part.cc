// The part `memory`: bytes of Redis' used_memory per (user, campaign), everything included: keys,
// expiry, tables.
//
//   fresh       every event recorded by itself and nothing done since
//   steady      thirty days of bursty sessions, the updater's compaction at work all the while
//   active      the moment when every user's session of 6 impressions is under way
//   compacted   every record compact
//
// The peers have one state: what their writers leave.
#include <random>

#include <fcap/store.h>

#include "base/clock.h"
#include "harness/part.h"
#include "ledger/format.h"
#include "path/population.h"
#include "updater/compaction/record_compactor.h"
#include "updater/compaction/written_users.h"

namespace fcap::bench {
namespace {

using std::chrono::milliseconds;
using updater::RecordCompactor;
using updater::WrittenUsers;

constexpr std::size_t kSessionImpressions = 6;
constexpr std::chrono::days kLifeLength{30};

// How far the clock jumps at a time: what becomes due meanwhile is compacted that much later.
constexpr milliseconds kStep{60'000};
constexpr milliseconds kQuietAfter{60'000};
constexpr std::chrono::seconds kFillWithin{30};
constexpr std::ptrdiff_t kAppendsATime = 1000;

struct LifeEvent {
  std::size_t user;
  PeerImpression impression;
};

Instant time_of(const LifeEvent& event) {
  return event.impression.time;
}

// Ordered by time, from `begin` on. What a session has left when the days end lies at their begin,
// so that at any instant as many are under way.
std::vector<LifeEvent> session_life(std::size_t users, const std::vector<std::string>& campaigns,
                                    Instant begin) {
  constexpr std::size_t kImpressions = 5 * kSessionImpressions;
  constexpr std::uint64_t kGapMinMs = 5'000;
  constexpr std::uint64_t kGapSpreadMs = 50'000;
  constexpr milliseconds kLength = kLifeLength;
  std::vector<LifeEvent> events;
  events.reserve(users * kImpressions);
  for (std::size_t user = 0; user < users; ++user) {
    std::mt19937_64 random(user);
    std::vector<std::string_view> shown;
    for (std::size_t i = 0; i < kImpressions; ++i) shown.push_back(campaigns[i % campaigns.size()]);
    std::ranges::shuffle(shown, random);
    milliseconds time{};
    for (std::size_t i = 0; i < kImpressions; ++i) {
      const bool begins = i % kSessionImpressions == 0;
      time = begins ? milliseconds(random() % kLength.count())
                    : time + milliseconds(kGapMinMs + random() % kGapSpreadMs);
      events.push_back({user,
                        {.time = begin + time % kLength,
                         .campaign = shown[i],
                         .fingerprint = static_cast<std::uint32_t>(random())}});
    }
  }
  std::ranges::stable_sort(events, {}, time_of);
  return events;
}

// Lets a population live for thirty days and leaves Redis as the updater would: every event
// appended, a record compacted when its tail has grown or its user has been quiet for a minute, by
// the updater's own code on a clock that runs ahead. Users come in bursts: five sessions each, at
// any time, of six impressions 5 to 55 s apart, three of each of ten campaigns in the end.
//
// Only the last `lived` days are gone through event by event; what came before is written
// compacted. Quiet again but for those whose session is under way.
class SteadyLife {
 public:
  SteadyLife(RedisConsole& console, std::size_t users)
      : console_(console),
        users_(users),
        written_({.users_max = users}),
        store_(testing::or_throw(make_redis_store(console.options()))),
        compactor_(
            *store_, {}, [this] { return now_; }, metrics_,
            [this](const RecordCompactor::Done& done) {
              if (done.outcome == RecordCompactor::CompactionOutcome::kCompacted) ++compactions_;
            }) {}

  // Which share of the users have last events that are not compacted in the end, and how often a
  // record was compacted, having grown or its user having become quiet, for each event appended.
  Numbers run(std::chrono::hours lived) {
    const std::vector<LifeEvent> events = session_life(users_, campaigns_, begin_);
    const Instant end = begin_ + kLifeLength;
    now_ = end - lived;
    auto next = std::ranges::lower_bound(events, now_, {}, time_of);
    const auto lived_from = next;
    write_compacted({events.begin(), next});
    while (now_ < end) {
      now_ = std::min(now_ + kStep, end);
      const auto due = std::ranges::lower_bound(next, events.end(), now_, {}, time_of);
      while (next != due) {
        const auto first = next;
        next += std::min(kAppendsATime, due - next);
        append({first, next});
      }
      compact_due();
    }
    return {{"steady_open_tails_share",
             static_cast<double>(written_.size()) / static_cast<double>(users_)},
            {"steady_compactions_per_event",
             compactions_ / static_cast<double>(events.end() - lived_from)}};
  }

 private:
  [[nodiscard]] WrittenUsers::Clock::time_point clock() const {
    return WrittenUsers::Clock::time_point(now_ - begin_);
  }

  void write_compacted(std::span<const LifeEvent> events) {
    std::map<std::size_t, ledger::Ledger> ledgers;
    for (const LifeEvent& event : events) ledgers[event.user].merge(entry_of(event.impression));
    send_each(console_, users_, [&](CommandBatch& batch, std::size_t user) {
      append_record(batch, key_of(user_id(user)), compacted_record(ledgers[user]));
    });
  }

  void append(std::span<const LifeEvent> events) {
    constexpr std::size_t kEntryBytes = 2 + ledger::format::kEntryPayloadBytes;
    // Each event is an APPEND, which tells the length, and an EXPIRE.
    CommandBatch batch([&](std::uint32_t index, const redis::Reply& reply) {
      if (index % 2 != 0) return;
      const std::string key = key_of(user_id(events[index / 2].user));
      const auto length = static_cast<std::size_t>(reply.integer);
      if (written_.note(key, length, kEntryBytes, clock()) == WrittenUsers::NoteOutcome::kDue) {
        due_.push_back(key);
      }
    });
    for (const LifeEvent& event : events) {
      layout_->record(batch, user_id(event.user), event.impression);
    }
    console_.run(batch);
  }

  void compact_due() {
    std::string quiet;
    while (written_.take_quiet(clock() - kQuietAfter, quiet)) due_.push_back(quiet);
    const auto until = Clock::now() + kFillWithin;
    while (!due_.empty() || compactor_.in_flight() > 0) {
      while (!due_.empty() && !compactor_.full()) {
        compactor_.start(due_.back());
        due_.pop_back();
      }
      compactor_.wait(until);
      compactor_.tick();
      if (Clock::now() > until) throw std::runtime_error("compaction hangs");
    }
  }

  RedisConsole& console_;
  const std::unique_ptr<Layout> layout_ = make_ledger_layout();
  const std::size_t users_;
  const std::vector<std::string> campaigns_ = campaign_ids(Population{}.campaigns);
  // The store's expiries are real, so the life ends now.
  const Instant begin_ = base::wall_now() - kLifeLength;
  Instant now_;
  double compactions_ = 0;
  WrittenUsers written_;
  std::vector<std::string> due_;
  updater::Metrics metrics_;
  std::unique_ptr<Store> store_;
  RecordCompactor compactor_;
};

class MemoryPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    result_.table("memory", "Memory by layout, bytes per (user, campaign)",
                  fmt::format("{} users; used_memory, everything included. A peer has one state: "
                              "what its writer leaves.",
                              flags_.users),
                  {{"fresh", "fresh", 1},
                   {"steady", "steady", 1},
                   {"active", "all users active", 1},
                   {"compacted", "compacted", 1}});
    ledger_states();
    for (const auto& peer : peers_) {
      const double bytes = recorded(*peer, flags_.users);
      result_.row(peer->traits().name, peer->traits().title, {{"fresh", bytes}});
      result_.number("bytes_per_pair_" + peer->traits().name, bytes);
    }
    if (!flags_.quick) by_users();
  }

 private:
  template <typename Write>
  double bytes_per_pair(std::size_t users, Write write) {
    console_.call({"FLUSHALL"});
    const double empty = console_.settled_memory_bytes();
    write();
    return (console_.settled_memory_bytes() - empty) /
           static_cast<double>(users * Population{}.campaigns);
  }

  // The first `compacted` impressions of each user are written as one record.
  double recorded(Layout& layout, std::size_t users, std::size_t compacted = 0) {
    return bytes_per_pair(users, [&] { populate(console_, layout, {.users = users}, compacted); });
  }

  double compacted(std::size_t users) {
    return bytes_per_pair(users, [&] { populate_compacted(console_, {.users = users}); });
  }

  void ledger_states() {
    const auto layout = make_ledger_layout();
    const auto lived = flags_.quick ? std::chrono::hours(6) : std::chrono::hours(kLifeLength);
    const std::size_t all = Population{}.campaigns * Population{}.impressions;
    Numbers life;
    const double fresh = recorded(*layout, flags_.users);
    const double steady =
        bytes_per_pair(flags_.users, [&] { life = SteadyLife(console_, flags_.users).run(lived); });
    const Numbers states = {{"fresh", fresh},
                            {"steady", steady},
                            {"active", recorded(*layout, flags_.users, all - kSessionImpressions)},
                            {"compacted", compacted(flags_.users)}};
    result_.row("ledger", layout->traits().title, states);
    for (const auto& [name, bytes] : states) {
      result_.number("bytes_per_pair_" + (name == "active" ? "all_active" : name), bytes);
    }
    for (const auto& [key, value] : life) result_.number(key, value);
  }

  // A server's table of keys doubles as it grows, so a population's share of it is between one and
  // two slots per key: the numbers are flat but for that.
  void by_users() {
    result_.table("memory_users", "Memory by number of users, bytes per (user, campaign)",
                  "Compacted records, and sorted sets as written.",
                  {{"ledger", "ledger, compacted", 1}, {"zset", "ZSET per user+campaign", 1}});
    for (const std::size_t divisor : {100U, 30U, 10U, 3U, 1U}) {
      const std::size_t users = flags_.users / divisor;
      result_.row(std::to_string(users), std::to_string(users) + " users",
                  {{"ledger", compacted(users)}, {"zset", recorded(*peers_.front(), users)}});
    }
  }

  const std::vector<std::unique_ptr<Layout>> peers_ = make_peers();
};

const Registered kMemory("memory", run_part<MemoryPart>);

}  // namespace
}  // namespace fcap::bench
