// The part `updater`: the write path beside its peer and its limits, over a real Kafka and Redis of
// its own. What is measured, where it runs and what the rows are: ../README.md.
#include <csignal>

#include "harness/part.h"
#include "updater/measuring.h"

namespace fcap::bench {
namespace {

constexpr const char* kRate = "events_per_second";
const std::vector<PartResult::Column> kDelays = {{"p50_ms", "p50 ms", 1},
                                                 {"p99_ms", "p99 ms", 1},
                                                 {"max_ms", "max ms", 1},
                                                 {"unseen", "unseen", 0}};

void say(const std::string& what) {
  fmt::print(stderr, "{} …\n", what);
}

class UpdaterPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    say(fmt::format("filling a topic with {} events", flags_.events));
    const double message_bytes = fill_topic(servers_, kFilledTopic, flags_.events);
    result_.table("updater", "Events per second, and what one costs",
                  fmt::format("{} events of {:.0f} bytes in a topic that lies ready, ten per user; "
                              "medians of {} rounds. The rows: bench/README.md.",
                              flags_.events, message_bytes, flags_.rounds),
                  {{kRate, "events/s", 0},
                   {"client_cpu_us", "client CPU µs", 2},
                   {"redis_cpu_us", "Redis CPU µs", 2},
                   {"redis_cpu_all_us", "the last compaction included", 2},
                   {"broker_cpu_us", "broker CPU µs", 2}});
    std::string commands;
    if (wanted("redis_limit")) {
      say("recording the updater's commands");
      empty_redis();
      commands = record_commands(servers_, kFilledTopic, flags_.events);
    }
    // Takes nothing from Redis' core while Redis is what decides.
    pin(servers_.kafka->pid(), kClientCore);
    say(fmt::format("{} rounds of what is compared", flags_.rounds));
    measure_compared(commands);
    if (wanted("replay")) measure_replay();
    if (wanted("slow")) measure_slow();
    // Live events are produced where there is room, as the broker then is.
    pin(servers_.kafka->pid(), kAnyCore);
    pin(getpid(), kAnyCore);
    if (wanted("propagation")) measure_live();
    if (wanted("gap")) measure_gap();
  }

 private:
  [[nodiscard]] bool wanted(const std::string& name) const {
    return flags_.only.empty() || std::ranges::count(flags_.only, name) > 0;
  }
  void empty_redis() { console_.call({"FLUSHALL", "SYNC"}); }

  // What `work` finds over an empty Redis, and what Redis received meanwhile.
  template <typename Work>
  Numbers over_empty_redis(std::uint64_t events, Work work) {
    const auto received = [&](const char* what) { return console_.number("stats", what); };
    empty_redis();
    const double bytes = received("total_net_input_bytes");
    const double commands = received("total_commands_processed");
    Numbers found = work();
    const auto count = static_cast<double>(events);
    found["bytes_per_event"] = (received("total_net_input_bytes") - bytes) / count;
    found["commands_per_event"] = (received("total_commands_processed") - commands) / count;
    return found;
  }

  void measure_compared(const std::string& commands) {
    const std::uint64_t events = flags_.events;
    const auto add = [&](const char* only, const char* name, const char* title, auto work) {
      if (!wanted(only)) return;
      compare(name, title, [=, this] { return over_empty_redis(events, work); });
    };
    add("updater", "updater", "fcap-updater", [this] { return drain_and_stop(); });
    add("updater", "updater_shared", "fcap-updater, with shared notes", [=, this] {
      write_shared_notes(servers_, events);
      return drain_and_stop();
    });
    add("zset", "zset", "ZSET writer, batches overlapped",
        [=, this] { return measure_zset_writer(servers_, events, 4); });
    add("zset", "zset_turns", "ZSET writer, taking turns",
        [=, this] { return measure_zset_writer(servers_, events, 1); });
    add("redis_limit", "redis_limit", "Redis alone, the same commands",
        [=, this] { return measure_commands(servers_, commands, events); });
    add("read", "read", "read and drop",
        [=, this] { return measure_reading(servers_, events, UpdaterStage::kRead); });
    add("read", "decode", "read, decode",
        [=, this] { return measure_reading(servers_, events, UpdaterStage::kDecode); });
    add("read", "group", "read, decode, group",
        [=, this] { return measure_reading(servers_, events, UpdaterStage::kGroup); });
    take_turns();

    // Events per second of the busier core.
    const auto carries = [this](const char* name) {
      const double client = median(name, "client_cpu_us");
      return std::isnan(client) ? client : 1 / std::max(client, median(name, "redis_cpu_us"));
    };
    ratio("updater_vs_zset", "updater", "zset", kRate);
    ratio("updater_vs_zset_turns", "updater", "zset_turns", kRate);
    ratio("updater_vs_redis_limit", "updater", "redis_limit", kRate);
    result_.number("updater_vs_zset_by_cpu", carries("updater") / carries("zset"));
    result_.number("updater_vs_redis_limit_by_cpu", carries("updater") / carries("redis_limit"));
    ratio("updater_cpu_shared_vs_plain", "updater_shared", "updater", "client_cpu_us");
    ratio("updater_redis_cpu_shared_vs_plain", "updater_shared", "updater", "redis_cpu_all_us");
    result_.number("updater_redis_cpu_vs_zset",
                   median("updater", "redis_cpu_all_us") / median("zset", "redis_cpu_us"));
  }

  // When the updater stops, it compacts every record as if its user had gone quiet.
  Numbers drain_and_stop() {
    const Meter all({{"redis_cpu_all_us", redis_->pid()}});
    RunningUpdater updater(servers_, kFilledTopic, redis_->address());
    Numbers found = updater.drain(flags_.events);
    updater.end(SIGTERM);
    found.merge(all.per("all_events", static_cast<double>(flags_.events)));
    return found;
  }

  // Over nothing, everything is restored; over what is there already, nothing is.
  void measure_replay() {
    const auto replay = [this](const char* name, const char* title) {
      auto command = updater_command(servers_, "replay", kFilledTopic, redis_->address());
      command.emplace_back("--json");
      const Meter meter({});
      const auto run = testing::run(command);
      if (run.exit_code != 0) throw std::runtime_error("fcap-updater replay: " + run.errors);
      const Numbers found = meter.per("events", static_cast<double>(flags_.events));
      result_.row(name, title, found);
      rounds_[name] = {found};
    };
    empty_redis();
    replay("replay_into_nothing", "replay into an empty Redis");
    replay("replay_again", "replay of what is there");
    ratio("replay_into_nothing_vs_live", "replay_into_nothing", "updater", kRate);
  }

  // What the updater sends to a slow Redis may be no more than what it sends to a fast one, and may
  // take hardly longer than Redis needs for that.
  void measure_slow() {
    // More would take minutes.
    const auto events = std::min<std::uint64_t>(flags_.events, 200'000);
    say(fmt::format("{} events over a Redis that is stopped most of the time", events));
    (void)fill_topic(servers_, kSlowTopic, events);
    empty_redis();
    const std::string commands = record_commands(servers_, kSlowTopic, events);
    const Numbers limit = over_empty_redis(events, [&] {
      const testing::SlowRedis slow(redis_->pid());
      return measure_commands(servers_, commands, events);
    });
    const Numbers updater = over_empty_redis(events, [&] {
      const testing::SlowRedis slow(redis_->pid());
      return RunningUpdater(servers_, kSlowTopic, redis_->address()).drain(events);
    });
    result_.table(
        "slow", "Over a slow Redis",
        fmt::format("{} events in a topic that lies ready; Redis has a fiftieth of a core.",
                    events),
        {{kRate, "events/s", 0},
         {"bytes_per_event", "bytes per event", 1},
         {"commands_per_event", "commands per event", 2},
         {"redis_cpu_us", "Redis CPU µs", 2}});
    result_.row("updater", "fcap-updater", updater);
    result_.row("limit", "the commands for a fast Redis, from memory", limit);
    result_.number("slow_time_vs_needed", limit.at(kRate) / updater.at(kRate));
    result_.number("slow_bytes_vs_needed",
                   updater.at("bytes_per_event") / limit.at("bytes_per_event"));
  }

  Numbers propagation(PropagationOptions options) {
    options.users = flags_.events / 10;
    return measure_propagation(servers_, options);
  }

  // The highest rate, in steps, at which the path keeps up while producer, broker, Redis and
  // updater share the machine: half of the events are there within 100 ms.
  double find_live_rate() {
    constexpr double kStep = 20'000;
    constexpr double kRateMax = 400'000;
    if (flags_.quick) return kStep;
    say("propagation: looking for the rate that the whole path keeps up with");
    double kept_up = kStep;
    for (double rate = kStep; rate <= kRateMax; rate += kStep) {
      const Numbers found =
          propagation({.topic = kLiveTopic, .rate = rate, .seconds = 8, .warm_up_seconds = 4});
      if (found.at("unseen") > 0 || !(found.at("p50_ms") <= 100)) break;
      kept_up = rate;
    }
    return kept_up;
  }

  void measure_live() {
    empty_redis();
    RunningUpdater updater(servers_, kLiveTopic, redis_->address());
    updater.wait_for("fcap_updater_ready", 1);
    const double live_rate = find_live_rate();
    say(fmt::format("propagation at 25, 50 and 90 % of {}/s", live_rate));
    auto columns = kDelays;
    columns.insert(columns.begin(), {"produced_per_second", "events/s", 0});
    result_.table("propagation", "From produced to visible",
                  fmt::format("Of the {} events/s that producer, broker, updater and Redis keep up "
                              "with on this machine.",
                              live_rate),
                  columns);
    for (const int share : {25, 50, 90}) {
      const Numbers found = propagation({.topic = kLiveTopic,
                                         .rate = std::floor(live_rate * share / 100),
                                         .seconds = propagation_seconds_,
                                         .warm_up_seconds = std::floor(propagation_seconds_ / 2)});
      result_.row(std::to_string(share), fmt::format("{} %", share), found);
      if (share == 50) result_.number("propagation_p99_ms_at_half", found.at("p99_ms"));
    }
    updater.end(SIGTERM);
  }

  // Redis loses everything: what the topic was filled with becomes a gap, and is read again while
  // live events flow. The same live events, before the loss and beside the gap.
  void measure_gap() {
    constexpr double kLivePerSecond = 5'000;
    empty_redis();
    RunningUpdater updater(servers_, kFilledTopic, redis_->address(), flags_.events / 10);
    (void)updater.drain(flags_.events);
    const auto live = [&] {
      return propagation({.topic = kFilledTopic,
                          .rate = kLivePerSecond,
                          .seconds = propagation_seconds_ / 2,
                          .warm_up_seconds = 1});
    };
    say(fmt::format("propagation at {}/s before a loss, and while it is filled", kLivePerSecond));
    const Numbers before = live();
    empty_redis();
    updater.wait_for("fcap_updater_gap_offsets", 1);
    Numbers open = live();
    open["filled"] = updater.metric("fcap_updater_gap_messages_total");
    open["left"] = updater.metric("fcap_updater_gap_offsets");
    updater.end(SIGTERM);

    auto columns = kDelays;
    columns.push_back({"filled", "read of the gap", 0});
    columns.push_back({"left", "still missing at the end", 0});
    result_.table("gap", "Live events beside a gap",
                  fmt::format("{:.0f} live events/s, before Redis loses {} events and while they "
                              "are read again.",
                              kLivePerSecond, flags_.events),
                  columns);
    result_.row("before", "before", before);
    result_.row("open", "while the gap is open", open);
    result_.number("gap_p99_vs_before", open.at("p99_ms") / before.at("p99_ms"));
  }

  const double propagation_seconds_ = flags_.quick ? 1 : 20;
  Servers servers_{*redis_};
};

const Registered kUpdater("updater", run_part<UpdaterPart>);

}  // namespace
}  // namespace fcap::bench
