// bench_updater: the write path beside its peer and its limits, over a real Kafka and Redis of its
// own. What is measured, where it runs and what the rows are: ../README.md.
#include <csignal>

#include "harness/part.h"
#include "support/slow_redis.h"
#include "test_paths.h"
#include "updater/measuring.h"

namespace fcap::bench {
namespace {

constexpr double kLiveBesideGap = 5'000;  // events per second

struct UpdaterFlags final : PartFlags {
  void add_to(CLI::App& app) override {
    PartFlags::add_to(app);
    app.add_option("--events", events, "How many the topic is filled with")
        ->check(CLI::Range(1'000, 1'000'000'000));
    app.add_option("--only", only,
                   "updater, zset, redis_limit, read, replay, slow, propagation, gap")
        ->delimiter(',');
    app.add_option("--propagation-seconds", propagation_seconds, "At each of the three rates");
    app.add_option("--live-step", live_step, "Of the search for the live rate; 0: 20,000/s");
  }

  std::uint64_t events = 1'000'000;
  std::vector<std::string> only;
  double propagation_seconds = 20;
  double live_step = 20'000;  // 0: the rate is not looked for
};

void say(const std::string& what) {
  fmt::print(stderr, "{} …\n", what);
}

class UpdaterPart final : public RedisPart {
 public:
  UpdaterPart(const UpdaterFlags& flags, PartResult& result)
      : RedisPart(flags, result), more_(flags) {}

  void run() {
    say(fmt::format("filling a topic with {} events", more_.events));
    message_bytes_ = fill_topic(servers_, kFilledTopic, more_.events);
    std::string commands;
    if (wanted("redis_limit")) {
      say("recording the updater's commands");
      empty_redis();
      commands = record_commands(servers_, kFilledTopic, more_.events);
    }
    // Takes nothing from Redis' core while Redis is what decides.
    pin(servers_.kafka.pid(), kClientCore);
    for (std::size_t round = 1; round <= flags_.rounds; ++round) {
      say(fmt::format("round {} of {}", round, flags_.rounds));
      measure_round(commands);
    }
    if (wanted("replay")) {
      empty_redis();
      measure_replay("replay_into_nothing");
      measure_replay("replay_again");
    }
    if (wanted("slow")) measure_slow();
    // Live events are produced where there is room, as the broker then is.
    pin(servers_.kafka.pid(), kAnyCore);
    pin(getpid(), kAnyCore);
    if (wanted("propagation")) measure_live();
    if (wanted("gap")) measure_gap();
    report();
    report_numbers();
  }

 private:
  [[nodiscard]] bool wanted(const std::string& name) const {
    return more_.only.empty() || std::ranges::count(more_.only, name) > 0;
  }
  // More would take minutes.
  [[nodiscard]] std::uint64_t slow_events() const {
    return std::min<std::uint64_t>(more_.events, 200'000);
  }
  void empty_redis() { console_.call({"FLUSHALL", "SYNC"}); }

  // Keeps what `work` finds over an empty Redis, and what Redis received meanwhile.
  template <typename Work>
  void measure(const std::string& name, std::uint64_t events, Work work) {
    const auto received = [&](const char* what) { return console_.number("stats", what); };
    empty_redis();
    const double bytes = received("total_net_input_bytes");
    const double commands = received("total_commands_processed");
    Numbers found = work();
    const auto count = static_cast<double>(events);
    found["bytes_per_event"] = (received("total_net_input_bytes") - bytes) / count;
    found["commands_per_event"] = (received("total_commands_processed") - commands) / count;
    measured_.keep(name, found);
  }

  void measure_round(const std::string& commands) {
    const std::uint64_t events = more_.events;
    if (wanted("updater")) measure("updater", events, [&] { return drain_and_stop(); });
    if (wanted("zset")) {
      measure("zset", events, [&] { return measure_zset_writer(servers_, events, 4); });
      measure("zset_turns", events, [&] { return measure_zset_writer(servers_, events, 1); });
    }
    if (wanted("redis_limit")) {
      measure("redis_limit", events, [&] { return measure_commands(servers_, commands, events); });
    }
    if (wanted("read")) {
      measured_.keep("read", measure_reading(servers_, events, Stage::kRead));
      measured_.keep("decode", measure_reading(servers_, events, Stage::kDecode));
      measured_.keep("group", measure_reading(servers_, events, Stage::kGroup));
    }
  }

  // When the updater stops, it compacts every record as if its user had gone quiet.
  Numbers drain_and_stop() {
    const Meter all({{"redis_cpu_all_us", redis_.pid()}});
    RunningUpdater updater(servers_, kFilledTopic, redis_.address());
    Numbers found = updater.drain(more_.events);
    updater.end(SIGTERM);
    found.merge(all.per("all_events", static_cast<double>(more_.events)));
    return found;
  }

  // Over what is there already nothing is restored; over nothing, everything is.
  void measure_replay(const std::string& name) {
    const auto config = write_config(servers_, kFilledTopic, redis_.address());
    const Meter meter({});
    const auto replay = testing::run({FCAP_UPDATER_BINARY, "replay", "--config", config, "--json"});
    if (replay.exit_code != 0) throw std::runtime_error("fcap-updater replay: " + replay.errors);
    measured_.keep(name, meter.per("events", static_cast<double>(more_.events)));
  }

  // What the updater sends to a slow Redis may be no more than what it sends to a fast one, and may
  // take hardly longer than Redis needs for that.
  void measure_slow() {
    const std::uint64_t events = slow_events();
    say(fmt::format("{} events over a Redis that is stopped most of the time", events));
    (void)fill_topic(servers_, kSlowTopic, events);
    empty_redis();
    const std::string commands = record_commands(servers_, kSlowTopic, events);
    measure("slow_limit", events, [&] {
      const testing::SlowRedis slow(redis_.pid());
      return measure_commands(servers_, commands, events);
    });
    measure("slow_updater", events, [&] {
      const testing::SlowRedis slow(redis_.pid());
      return RunningUpdater(servers_, kSlowTopic, redis_.address()).drain(events);
    });
  }

  Numbers propagation(const char* topic, double rate, double seconds, double warm_up_seconds) {
    return measure_propagation(servers_, {.topic = topic,
                                          .rate = rate,
                                          .seconds = seconds,
                                          .warm_up_seconds = warm_up_seconds,
                                          .users = more_.events / 10});
  }

  // The highest rate, in steps, at which the path keeps up while producer, broker, Redis and
  // updater share the machine: half of the events are there within 100 ms.
  double find_live_rate() {
    constexpr double kRateMax = 400'000;
    if (more_.live_step == 0) return 20'000;
    say("propagation: looking for the rate that the whole path keeps up with");
    double kept_up = more_.live_step;
    for (int step = 1; step * more_.live_step <= kRateMax; ++step) {
      const double rate = step * more_.live_step;
      const Numbers found = propagation(kLiveTopic, rate, 8, 4);
      if (found.at("unseen") > 0 || !(found.at("p50_ms") <= 100)) break;
      kept_up = rate;
    }
    return kept_up;
  }

  void measure_live() {
    empty_redis();
    RunningUpdater updater(servers_, kLiveTopic, redis_.address());
    updater.wait_for("fcap_updater_ready", 1);
    live_rate_ = find_live_rate();
    say(fmt::format("propagation at 25, 50 and 90 % of {}/s", live_rate_));
    for (const int share : {25, 50, 90}) {
      const double seconds = more_.propagation_seconds;
      measured_.keep(fmt::format("propagation_{}", share),
                     propagation(kLiveTopic, std::floor(live_rate_ * share / 100), seconds,
                                 std::floor(seconds / 2)));
    }
    updater.end(SIGTERM);
  }

  // Redis loses everything: what the topic was filled with becomes a gap, and is read again while
  // live events flow. The same live events, before the loss and beside the gap.
  void measure_gap() {
    empty_redis();
    RunningUpdater updater(servers_, kFilledTopic, redis_.address(), more_.events / 10);
    (void)updater.drain(more_.events);
    const auto live = [&] {
      return propagation(kFilledTopic, kLiveBesideGap, more_.propagation_seconds / 2, 1);
    };
    say(fmt::format("propagation at {}/s before a loss, and while it is filled", kLiveBesideGap));
    measured_.keep("gap_before", live());
    empty_redis();
    updater.wait_for("fcap_updater_gap_offsets", 1);
    Numbers open = live();
    open["filled"] = updater.metric("fcap_updater_gap_messages_total");
    open["left"] = updater.metric("fcap_updater_gap_offsets");
    measured_.keep("gap_open", open);
    updater.end(SIGTERM);
  }

  // Rows of what was measured, if it was, under `prefix` and the row's name.
  void rows(const std::string& table, const std::string& prefix,
            const std::vector<std::pair<std::string, std::string>>& titles) {
    for (const auto& [name, title] : titles) {
      if (!measured_.has(prefix + name)) continue;
      result_.row(table, name, title, measured_.medians(prefix + name));
    }
  }

  void report() {
    result_.table("updater", "Events per second, and what one costs",
                  fmt::format("{} events of {:.0f} bytes in a topic that lies ready, ten per user; "
                              "medians of {} rounds. The rows: bench/README.md.",
                              more_.events, message_bytes_, flags_.rounds),
                  {{"events_per_second", "events/s", 0},
                   {"client_cpu_us", "client CPU µs", 2},
                   {"redis_cpu_us", "Redis CPU µs", 2},
                   {"redis_cpu_all_us", "the last compaction included", 2},
                   {"broker_cpu_us", "broker CPU µs", 2}});
    rows("updater", "",
         {{"updater", "fcap-updater"},
          {"zset", "ZSET writer, batches overlapped"},
          {"zset_turns", "ZSET writer, taking turns"},
          {"redis_limit", "Redis alone, the same commands"},
          {"read", "read and drop"},
          {"decode", "read, decode"},
          {"group", "read, decode, group"},
          {"replay_into_nothing", "replay into an empty Redis"},
          {"replay_again", "replay of what is there"}});
    result_.table(
        "slow", "Over a slow Redis",
        fmt::format("{} events in a topic that lies ready; Redis has a fiftieth of a core.",
                    slow_events()),
        {{"events_per_second", "events/s", 0},
         {"bytes_per_event", "bytes per event", 1},
         {"commands_per_event", "commands per event", 2},
         {"redis_cpu_us", "Redis CPU µs", 2}});
    rows("slow", "slow_",
         {{"updater", "fcap-updater"}, {"limit", "the commands for a fast Redis, from memory"}});
    const std::vector<PartResult::Column> delays = {{"p50_ms", "p50 ms", 1},
                                                    {"p99_ms", "p99 ms", 1},
                                                    {"max_ms", "max ms", 1},
                                                    {"unseen", "unseen", 0}};
    auto columns = delays;
    columns.insert(columns.begin(), {"produced_per_second", "events/s", 0});
    result_.table("propagation", "From produced to visible",
                  fmt::format("Of the {} events/s that producer, broker, updater and Redis keep up "
                              "with on this machine.",
                              live_rate_),
                  columns);
    rows("propagation", "propagation_", {{"25", "25 %"}, {"50", "50 %"}, {"90", "90 %"}});
    columns = delays;
    columns.insert(columns.end(),
                   {{"filled", "read of the gap", 0}, {"left", "still missing at the end", 0}});
    result_.table("gap", "Live events beside a gap",
                  fmt::format("{:.0f} live events/s, before Redis loses {} events and while they "
                              "are read again.",
                              kLiveBesideGap, more_.events),
                  columns);
    rows("gap", "gap_", {{"before", "before"}, {"open", "while the gap is open"}});
  }

  void report_numbers() {
    const std::string rate = "events_per_second";
    const auto median = [this](const char* name, const std::string& key) {
      return measured_.median(name, key);
    };
    const auto ratio = [&](const char* name, const char* to) {
      return measured_.ratio(name, to, rate);
    };
    // Events per second of the busier core.
    const auto carries = [&](const char* name) {
      const double client = median(name, "client_cpu_us");
      const double redis = median(name, "redis_cpu_us");
      return std::isnan(client) ? client : 1 / std::max(redis, client);
    };
    for (const auto& [key, value] : std::vector<std::pair<std::string, double>>{
             {"updater_vs_zset", ratio("updater", "zset")},
             {"updater_vs_zset_turns", ratio("updater", "zset_turns")},
             {"updater_vs_redis_limit", ratio("updater", "redis_limit")},
             {"updater_vs_zset_by_cpu", carries("updater") / carries("zset")},
             {"updater_vs_redis_limit_by_cpu", carries("updater") / carries("redis_limit")},
             {"updater_redis_cpu_vs_zset",
              median("updater", "redis_cpu_all_us") / median("zset", "redis_cpu_us")},
             {"replay_into_nothing_vs_live", ratio("replay_into_nothing", "updater")},
             {"slow_time_vs_needed", ratio("slow_limit", "slow_updater")},
             {"slow_bytes_vs_needed",
              measured_.ratio("slow_updater", "slow_limit", "bytes_per_event")},
             {"gap_p99_vs_before", measured_.ratio("gap_open", "gap_before", "p99_ms")},
             {"propagation_p99_ms_at_half", median("propagation_50", "p99_ms")}}) {
      result_.number(key, value);
    }
  }

  const UpdaterFlags& more_;
  Servers servers_{redis_};
  double message_bytes_ = 0;
  double live_rate_ = std::nan("");
  Measured measured_;
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  using namespace fcap::bench;
  return run_part<UpdaterPart, UpdaterFlags>(
      argc, argv, "Events per second from Kafka to Redis, beside a peer and the limits.");
}
