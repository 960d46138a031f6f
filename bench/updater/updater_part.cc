// bench_updater: the write path beside its peer and its limits, over a real Kafka and Redis. What
// is measured and how: README.md.
//
//   updater      the real fcap-updater drains a topic that was filled before
//   zset         ZADD + ZREMRANGEBYSCORE + EXPIRE for each event: batches overlapped, and taking
//                turns with Redis
//   redis_limit  the bytes that the updater sends, sent again from memory
//   read         no Redis: reading alone, with decoding, with grouping
//   replay       `fcap-updater replay` of the topic over what is there already, and over nothing
//   slow         the updater and its commands once more, over a Redis that is stopped most of the
//                time
//   propagation  produced at a fixed rate: how long until a GET sees the event
//
// Redis has one core; what is measured has another, with the broker. Live events are produced where
// there is room, as the broker then is. Every figure is the median of the rounds, and a round
// measures all.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "harness/interleave.h"
#include "harness/part_flags.h"
#include "harness/part_result.h"
#include "harness/redis_console.h"
#include "updater/commands.h"
#include "updater/propagation.h"
#include "updater/topic_work.h"

namespace fcap::bench {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kFilled = "impressions";
constexpr const char* kLive = "live";
constexpr const char* kSlow = "slow";
constexpr double kLiveBesideGap = 5'000;  // events per second

struct UpdaterFlags {
  Servers servers;
  std::uint64_t events = 1'000'000;
  std::vector<std::string> only;
  double propagation_seconds = 20;
  double live_step = 20'000;  // 0: the rate is not looked for
};

template <typename... Arguments>
void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  fmt::print(stderr, text, std::forward<Arguments>(arguments)...);
  fmt::print(stderr, "\n");
}

class UpdaterPart {
 public:
  UpdaterPart(const PartFlags& flags, const UpdaterFlags& more)
      : flags_(flags),
        more_(more),
        servers_(more.servers),
        users_(more.events / 10),
        console_(flags.redis) {}

  int run() {
    say("filling a topic with {} events …", more_.events);
    message_bytes_ = fill_topic(servers_, kFilled, more_.events, users_);
    std::string commands;
    if (wanted("redis_limit")) {
      say("recording the updater's commands …");
      empty_redis();
      commands = record_commands(servers_, kFilled, more_.events);
    }
    // Takes nothing from Redis' core while Redis is what decides.
    pin(servers_.broker_pid, kClientCore);
    for (std::size_t round = 1; round <= flags_.rounds; ++round) {
      say("round {} of {} …", round, flags_.rounds);
      measure_round(commands);
    }
    if (wanted("replay")) {
      empty_redis();
      measure_replay("replay_into_nothing");
      measure_replay("replay_again");
    }
    if (wanted("slow")) measure_slow();
    if (wanted("propagation")) measure_live();
    if (wanted("gap")) measure_gap();
    report();
    result_.write(flags_.json);
    return 0;
  }

 private:
  [[nodiscard]] bool wanted(const std::string& name) const {
    return more_.only.empty() || std::ranges::count(more_.only, name) > 0;
  }
  /// More would take minutes.
  [[nodiscard]] std::uint64_t slow_events() const {
    return std::min<std::uint64_t>(more_.events, 200'000);
  }
  void empty_redis() { console_.call({"FLUSHALL", "SYNC"}); }
  double memory_per_user() {
    return std::stod(console_.info("memory", "used_memory")) / static_cast<double>(users_);
  }

  void measure_round(const std::string& commands) {
    if (wanted("updater")) measure_updater();
    if (wanted("zset")) {
      measure_zset("zset", 4);
      measure_zset("zset_turns", 1);
    }
    if (wanted("redis_limit")) {
      empty_redis();
      keep("redis_limit", measure_commands(servers_, commands, more_.events));
    }
    if (wanted("read")) {
      keep("read", measure_reading(servers_, kFilled, more_.events, Stage::kRead));
      keep("decode", measure_reading(servers_, kFilled, more_.events, Stage::kDecode));
      keep("group", measure_reading(servers_, kFilled, more_.events, Stage::kGroup));
    }
  }

  // The drain; then the updater stops, which compacts every record as if its user had gone quiet.
  void measure_updater() {
    empty_redis();
    const double before = console_.cpu_seconds();
    RunningUpdater updater(servers_, kFilled, servers_.redis);
    Numbers found = updater.drain(more_.events);
    found["memory_bytes_per_user"] = memory_per_user();
    updater.end(SIGTERM);
    found["redis_cpu_all_us"] =
        1e6 * (console_.cpu_seconds() - before) / static_cast<double>(more_.events);
    found["memory_quiet_bytes_per_user"] = memory_per_user();
    keep("updater", found);
  }

  void measure_zset(const std::string& name, std::size_t in_flight) {
    empty_redis();
    Numbers found = measure_zset_writer(servers_, kFilled, more_.events, in_flight);
    found["memory_bytes_per_user"] = memory_per_user();
    keep(name, found);
  }

  // Over what is there already nothing is restored; over nothing, everything is.
  void measure_replay(const std::string& name) {
    const auto config = write_config(servers_, kFilled, servers_.redis);
    const auto began = std::chrono::steady_clock::now();
    ChildProcess replay({servers_.updater, "replay", "--config", config, "--json"},
                        servers_.directory / "replay.log");
    if (!replay.end(0)) throw std::runtime_error("fcap-updater replay failed");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    keep(name, {{"events_per_second", static_cast<double>(more_.events) / took.count()}});
  }

  // What the updater sends to a slow Redis may be no more than what it sends to a fast one, and may
  // take hardly longer than Redis needs for that.
  void measure_slow() {
    const std::uint64_t events = slow_events();
    const auto total = [this](const char* field) {
      return std::stod(console_.info("stats", field));
    };
    say("{} events over a Redis that is stopped most of the time …", events);
    (void)fill_topic(servers_, kSlow, events, events / 10);
    empty_redis();
    const std::string commands = record_commands(servers_, kSlow, events);
    empty_redis();
    {
      const SlowedProcess slowed(servers_.redis_pid);
      keep("slow_limit", measure_commands(servers_, commands, events));
    }
    empty_redis();
    const double bytes_before = total("total_net_input_bytes");
    const double commands_before = total("total_commands_processed");
    Numbers found;
    {
      const SlowedProcess slowed(servers_.redis_pid);
      RunningUpdater updater(servers_, kSlow, servers_.redis);
      found = updater.drain(events);
      updater.end(SIGKILL);
    }
    const auto count = static_cast<double>(events);
    found["bytes_per_event"] = (total("total_net_input_bytes") - bytes_before) / count;
    found["commands_per_event"] = (total("total_commands_processed") - commands_before) / count;
    keep("slow_updater", found);
  }

  Numbers propagation(double rate, double seconds) {
    return measure_propagation(servers_, {.topic = kLive,
                                          .rate = rate,
                                          .seconds = seconds,
                                          .warm_up_seconds = std::floor(seconds / 2),
                                          .users = users_});
  }

  // The highest rate, in steps, at which the path keeps up while producer, broker, Redis and
  // updater share the machine: half of the events are there within 100 ms.
  double find_live_rate() {
    constexpr double kRateMax = 400'000;
    double kept_up = more_.live_step;
    for (double rate = more_.live_step; rate <= kRateMax; rate += more_.live_step) {
      const Numbers found = propagation(rate, 8);
      const bool keeps_up = found.at("unseen") == 0 && found.at("p50_ms") <= 100;
      if (!keeps_up) break;
      kept_up = rate;
    }
    return kept_up;
  }

  void measure_live() {
    empty_redis();
    pin(servers_.broker_pid, -1);
    pin(getpid(), -1);
    RunningUpdater updater(servers_, kLive, servers_.redis);
    updater.wait_until_ready();
    live_rate_ = 20'000;
    if (more_.live_step > 0) {
      say("propagation: looking for the rate that the whole path keeps up with …");
      live_rate_ = find_live_rate();
    }
    say("propagation at 25, 50 and 90 % of {}/s …", live_rate_);
    for (const int share : {25, 50, 90}) {
      keep(fmt::format("propagation_{}", share),
           propagation(std::floor(live_rate_ * share / 100), more_.propagation_seconds));
    }
    updater.end(SIGTERM);
  }

  // Redis loses everything: what the topic was filled with becomes a gap, and is read again while
  // live events flow. The same live events, before the loss and beside the gap.
  void measure_gap() {
    empty_redis();
    pin(servers_.broker_pid, -1);
    pin(getpid(), -1);
    RunningUpdater updater(servers_, kFilled, servers_.redis, more_.events / 10);
    (void)updater.drain(more_.events);
    const auto live = [&] {
      return measure_propagation(servers_, {.topic = kFilled,
                                            .rate = kLiveBesideGap,
                                            .seconds = more_.propagation_seconds / 2,
                                            .warm_up_seconds = 1,
                                            .users = users_});
    };
    say("propagation at {}/s before a loss, and while it is filled …", kLiveBesideGap);
    keep("gap_before", live());
    empty_redis();
    updater.wait_for_gap();
    Numbers open = live();
    open["filled"] = static_cast<double>(updater.gap_messages());
    open["left"] = static_cast<double>(updater.gap_offsets());
    keep("gap_open", open);
    updater.end(SIGTERM);
  }

  void keep(const std::string& name, const Numbers& numbers) {
    for (const auto& [key, value] : numbers) measured_[name][key].push_back(value);
  }

  /// The median over the rounds; none: NaN.
  [[nodiscard]] double median(const std::string& name, const std::string& key) const {
    const auto row = measured_.find(name);
    if (row == measured_.end() || !row->second.contains(key)) return kNone;
    std::vector<double> values = row->second.at(key);
    std::erase_if(values, [](double value) { return std::isnan(value); });
    return values.empty() ? kNone : median_of(std::move(values));
  }

  [[nodiscard]] double per_second(const std::string& name) const {
    return median(name, "events_per_second");
  }
  /// Events per second of the busier core.
  [[nodiscard]] double carries(const std::string& name) const {
    const double client = median(name, "client_cpu_us");
    const double redis = median(name, "redis_cpu_us");
    return std::isnan(client) || std::isnan(redis) ? kNone : 1 / std::max(client, redis);
  }

  /// A row of everything that was measured under a name, if anything was.
  void row(const std::string& table, const std::string& name, const std::string& measured,
           const std::string& title) {
    const auto found = measured_.find(measured);
    if (found == measured_.end()) return;
    std::vector<std::pair<std::string, double>> numbers;
    for (const auto& [key, values] : found->second)
      numbers.emplace_back(key, median(measured, key));
    result_.row(table, name, title, numbers);
  }

  void report() {
    report_numbers();
    result_.table("updater", "Events per second, and what one costs",
                  fmt::format("{} events of {:.0f} bytes in a topic that lies ready, ten per user; "
                              "medians of {} rounds. The rows: bench/updater/README.md.",
                              more_.events, message_bytes_, flags_.rounds),
                  {{"events_per_second", "events/s", 0},
                   {"client_cpu_us", "client CPU µs", 2},
                   {"redis_cpu_us", "Redis CPU µs", 2},
                   {"redis_cpu_all_us", "the last compaction included", 2},
                   {"broker_cpu_us", "broker CPU µs", 2}});
    for (const auto& [name, title] : std::vector<std::pair<std::string, std::string>>{
             {"updater", "fcap-updater"},
             {"zset", "ZSET writer, batches overlapped"},
             {"zset_turns", "ZSET writer, taking turns"},
             {"redis_limit", "Redis alone, the same commands"},
             {"read", "read and drop"},
             {"decode", "read, decode"},
             {"group", "read, decode, group"},
             {"replay_into_nothing", "replay into an empty Redis"},
             {"replay_again", "replay of what is there"}}) {
      row("updater", name, name, title);
    }
    result_.table(
        "slow", "Over a slow Redis",
        fmt::format("{} events in a topic that lies ready; Redis is stopped for 50 ms out "
                    "of 51.",
                    slow_events()),
        {{"events_per_second", "events/s", 0},
         {"bytes_per_event", "bytes per event", 1},
         {"commands_per_event", "commands per event", 2},
         {"redis_cpu_us", "Redis CPU µs", 2}});
    row("slow", "updater", "slow_updater", "fcap-updater");
    row("slow", "limit", "slow_limit", "the commands for a fast Redis, from memory");
    result_.table("propagation", "From produced to visible",
                  fmt::format("Of the {} events/s that producer, broker, updater and Redis keep up "
                              "with on this machine.",
                              live_rate_),
                  {{"produced_per_second", "events/s", 0},
                   {"p50_ms", "p50 ms", 1},
                   {"p99_ms", "p99 ms", 1},
                   {"max_ms", "max ms", 1},
                   {"unseen", "unseen", 0}});
    for (const char* share : {"25", "50", "90"}) {
      row("propagation", share, fmt::format("propagation_{}", share), fmt::format("{} %", share));
    }
    result_.table(
        "gap", "Live events beside a gap",
        fmt::format("{:.0f} live events/s, before Redis loses {} events and while they are "
                    "read again.",
                    kLiveBesideGap, more_.events),
        {{"p50_ms", "p50 ms", 1},
         {"p99_ms", "p99 ms", 1},
         {"max_ms", "max ms", 1},
         {"unseen", "unseen", 0},
         {"filled", "read of the gap", 0},
         {"left", "still missing at the end", 0}});
    row("gap", "before", "gap_before", "before");
    row("gap", "open", "gap_open", "while the gap is open");
  }

  void report_numbers() {
    const double updater = per_second("updater");
    for (const auto& [key, value] : std::vector<std::pair<std::string, double>>{
             {"message_bytes", message_bytes_},
             {"updater_per_second", updater},
             {"updater_vs_zset", updater / per_second("zset")},
             {"updater_vs_zset_turns", updater / per_second("zset_turns")},
             {"updater_vs_redis_limit", updater / per_second("redis_limit")},
             {"updater_vs_zset_by_cpu", carries("updater") / carries("zset")},
             {"updater_vs_redis_limit_by_cpu", carries("updater") / carries("redis_limit")},
             {"updater_cpu_us", median("updater", "client_cpu_us")},
             {"updater_redis_cpu_us", median("updater", "redis_cpu_us")},
             {"updater_redis_cpu_all_us", median("updater", "redis_cpu_all_us")},
             {"updater_redis_cpu_vs_zset",
              median("updater", "redis_cpu_all_us") / median("zset", "redis_cpu_us")},
             {"read_decode_group_per_second", per_second("group")},
             {"replay_per_second", per_second("replay_again")},
             {"slow_time_vs_needed", per_second("slow_limit") / per_second("slow_updater")},
             {"slow_bytes_vs_needed",
              median("slow_updater", "bytes_per_event") / median("slow_limit", "bytes_per_event")},
             {"gap_p99_vs_before", median("gap_open", "p99_ms") / median("gap_before", "p99_ms")},
             {"propagation_live_rate", wanted("propagation") ? live_rate_ : kNone},
             {"propagation_p50_ms_at_half", median("propagation_50", "p50_ms")},
             {"propagation_p99_ms_at_half", median("propagation_50", "p99_ms")}}) {
      result_.number(key, value);
    }
  }

  const PartFlags& flags_;
  const UpdaterFlags& more_;
  const Servers& servers_;
  const std::size_t users_;
  RedisConsole console_;
  PartResult result_{"updater"};
  double message_bytes_ = 0;
  double live_rate_ = 0;
  std::map<std::string, std::map<std::string, std::vector<double>>> measured_;
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::PartFlags flags;
  fcap::bench::UpdaterFlags more;
  fcap::bench::Servers& servers = more.servers;
  CLI::App app("Events per second from Kafka to Redis, beside a peer and the limits.",
               "bench_updater");
  app.add_option("--brokers", servers.brokers, "A Kafka with the topics impressions, live and slow")
      ->required();
  app.add_option("--broker-pid", servers.broker_pid, "Its process")->required();
  app.add_option("--redis-pid", servers.redis_pid, "Redis' process")->required();
  app.add_option("--updater", servers.updater, "The program fcap-updater")->required();
  app.add_option("--directory", servers.directory, "For files of the run")->required();
  app.add_option("--events", more.events, "How many the topic is filled with")
      ->check(CLI::Range(1'000, 1'000'000'000));
  app.add_option("--only", more.only,
                 "updater, zset, redis_limit, read, replay, slow, propagation, gap")
      ->delimiter(',');
  app.add_option("--propagation-seconds", more.propagation_seconds, "At each of the three rates");
  app.add_option("--live-step", more.live_step, "Of the search for the live rate; 0: 20,000/s");
  return fcap::bench::run_part(app, argc, argv, flags, [&] {
    servers.redis = flags.redis;
    return fcap::bench::UpdaterPart(flags, more).run();
  });
}
