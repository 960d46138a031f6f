// An ad server in small: asks libfcap before each impression, publishes what it showed, and says
// live how that goes. See README.md beside this file.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <fcap/checker.h>
#include <fcap/redis_url.h>

#include "consumer_lag.h"
#include "impression_ids.h"
#include "impression_producer.h"
#include "live_counters.h"
#include "live_view.h"
#include "metrics_endpoint.h"
#include "propagation_probe.h"
#include "server.h"
#include "summary.h"
#include "traffic.h"

namespace ad_server {
namespace {

using std::chrono::steady_clock;

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

struct Flags {
  std::string redis = "127.0.0.1:6379";
  std::string redis_password;
  std::string postgres;
  std::string brokers = "127.0.0.1:9092";
  std::string topic = "impressions";
  std::string group = "fcap-updater";
  std::string key_prefix = "fcap";
  std::string log;
  std::string json;
  std::string probe_campaign = "demo-probe";
  int seconds = 20;
  double rate = 4000;
  std::size_t users = 2000;
  std::size_t threads = 2;
  int drain_seconds = 60;
  int metrics_port = 0;
  Tier tier = Tier::kLocal;
  std::string signing_keys;
  std::size_t servers = 0;  // 0: this one is alone, with other traffic
  std::size_t server = 0;
  std::int64_t start_at_ms = 0;
  int slots_apart_ms = 5;
  int deadline_ms = 5;
  std::vector<std::string> campaigns;
};

void add_people_flags(CLI::App& app, Flags& flags) {
  app.add_option("--servers", flags.servers,
                 "Serve people in sessions, as one of so many servers that share them")
      ->check(CLI::Range(1, 64));
  app.add_option("--server", flags.server, "With --servers: which of them, from 0")
      ->check(CLI::Range(0, 63));
  app.add_option("--start-at", flags.start_at_ms,
                 "With --servers: when all begin, in milliseconds since 1970")
      ->check(CLI::PositiveNumber);
  app.add_option("--slots-apart", flags.slots_apart_ms,
                 "With --servers: milliseconds between the two slots of a page")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--campaigns", flags.campaigns, "With --servers: the campaigns, best first")
      ->delimiter(',');
}

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("--redis", flags.redis, "Redis: host:port, redis://… or redis-sentinel://…")
      ->envname("FCAP_REDIS")
      ->capture_default_str();
  app.add_option("--redis-password", flags.redis_password, "Redis password")
      ->envname("FCAP_REDIS_PASSWORD");
  app.add_option("--postgres", flags.postgres, "PostgreSQL connection string of the rules")
      ->envname("FCAP_POSTGRES")
      ->required();
  app.add_option("--brokers", flags.brokers, "Kafka bootstrap servers")->capture_default_str();
  app.add_option("--topic", flags.topic, "Topic of the impressions")->capture_default_str();
  app.add_option("--group", flags.group, "The updater's consumer group")->capture_default_str();
  app.add_option("--key-prefix", flags.key_prefix, "Prefix of the Redis keys")
      ->capture_default_str();
  app.add_option("--log", flags.log, "Serve this impression log instead of synthetic traffic")
      ->check(CLI::ExistingFile);
  app.add_option("--json", flags.json, "Write the summary to this file");
  app.add_option("--probe-campaign", flags.probe_campaign,
                 "A campaign capped at 1, to measure the propagation delay; empty: do not")
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "How long to serve")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  app.add_option("--rate", flags.rate, "Synthetic page views per second")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  app.add_option("--users", flags.users, "Synthetic users")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  app.add_option("--threads", flags.threads, "Worker threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--drain-seconds", flags.drain_seconds,
                 "How long to wait at the end for the updater to catch up")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_option("--deadline-ms", flags.deadline_ms, "How long a check may wait for Redis")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--metrics-port", flags.metrics_port,
                 "Serve the Checker's metrics and health at http://127.0.0.1:PORT; 0: do not")
      ->check(CLI::Range(0, 65'535))
      ->capture_default_str();
  app.add_option("--signing-keys", flags.signing_keys,
                 "Sign the ids of impressions with the keys in this file (docs/signed-ids.md)")
      ->check(CLI::ExistingFile);
  const std::map<std::string, Tier> tiers = {{"nothing", Tier::kNothing},
                                             {"local", Tier::kLocal},
                                             {"shared", Tier::kShared},
                                             {"page", Tier::kPage},
                                             {"reserve", Tier::kReserve}};
  app.add_option("--tier", flags.tier,
                 "How much a shown impression counts before it has come back through Kafka: "
                 "nothing; local (the default), in this process; shared, on all servers; page, the "
                 "same with all slots of a page in one call; reserve, before it is shown. The last "
                 "three need an updater")
      ->transform(CLI::CheckedTransformer(tiers));
  add_people_flags(app, flags);
}

std::unique_ptr<fcap::Checker> make_checker(const Flags& flags) {
  fcap::CheckerOptions options;
  options.redis.password = flags.redis_password;
  auto redis = fcap::parse_redis_url(flags.redis, std::move(options.redis));
  if (!redis.ok()) throw std::runtime_error("--redis: " + redis.status().text());
  options.redis = std::move(redis).value();
  options.rules.postgres = flags.postgres;
  options.key_prefix = flags.key_prefix;
  options.deadline = std::chrono::milliseconds(flags.deadline_ms);
  auto made = fcap::Checker::create(std::move(options));
  if (!made.ok()) throw std::runtime_error(made.status().text());
  if (made.value()->rules() == nullptr) {
    throw std::runtime_error(
        "no rules could be loaded: is --postgres right, and are the tables there?");
  }
  return std::move(made).value();
}

std::vector<std::string> live_campaigns(const fcap::RuleSet& rules, const std::string& without) {
  std::vector<std::string> ids;
  for (const fcap::Campaign& campaign : rules.campaigns()) {
    if (!campaign.deleted && campaign.id != without) ids.push_back(campaign.id);
  }
  return ids;
}

// Throws if it has passed: then the servers would not serve people at the same time.
steady_clock::time_point common_start(const Flags& flags) {
  const auto left = fcap::instant_from_ms(flags.start_at_ms) - std::chrono::system_clock::now();
  if (left.count() < 0) throw std::runtime_error("not ready by --start-at");
  return steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(left);
}

std::unique_ptr<Traffic> make_traffic(const Flags& flags, const std::string& user_prefix,
                                      const fcap::RuleSet& rules) {
  if (flags.servers > 0) {
    return make_people_traffic({.user_prefix = user_prefix,
                                .users = flags.users,
                                .server = flags.server,
                                .servers = flags.servers,
                                .workers = flags.threads,
                                .start = common_start(flags),
                                .length = std::chrono::seconds(flags.seconds),
                                .slots_apart = std::chrono::milliseconds(flags.slots_apart_ms),
                                .whole_pages = flags.tier == Tier::kPage,
                                .campaigns = flags.campaigns});
  }
  if (!flags.log.empty()) {
    return make_log_traffic({.path = flags.log,
                             .user_prefix = user_prefix,
                             .length = std::chrono::seconds(flags.seconds),
                             .workers = flags.threads});
  }
  std::vector<std::string> campaigns = live_campaigns(rules, flags.probe_campaign);
  if (campaigns.empty()) throw std::runtime_error("PostgreSQL's table campaigns holds no campaign");
  return make_synthetic_traffic({.user_prefix = user_prefix,
                                 .users = flags.users,
                                 .requests_per_second = flags.rate,
                                 .length = std::chrono::seconds(flags.seconds),
                                 .workers = flags.threads,
                                 .campaigns = std::move(campaigns)});
}

// Waits until the updater has committed everything; false when it has not in time.
bool drain(ConsumerLag& lag, LiveView& view, const Flags& flags) {
  const auto give_up = steady_clock::now() + std::chrono::seconds(flags.drain_seconds);
  while (steady_clock::now() < give_up && !interrupted.load()) {
    const auto messages = lag.messages();
    if (messages && *messages == 0) return true;
    view.print(messages);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  return false;
}

int run(const Flags& flags) {
  const auto started = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::string run_id =
      "r" + std::to_string(flags.servers > 0 ? flags.start_at_ms : started.count());
  Summary summary{.user_prefix = run_id + "-", .topic = flags.topic};

  const ImpressionIds ids(flags.signing_keys);
  const auto checker = make_checker(flags);
  std::optional<MetricsEndpoint> endpoint;
  if (flags.metrics_port > 0) endpoint.emplace(*checker, flags.metrics_port);
  ImpressionProducer producer(flags.brokers, flags.topic);
  ConsumerLag lag(flags.brokers, flags.topic, flags.group);
  // A broker that has just started takes its time.
  for (int tries = 0; tries < 5 && summary.begin_offsets.empty(); ++tries) {
    summary.begin_offsets = lag.end_offsets();
  }
  if (summary.begin_offsets.empty()) {
    throw std::runtime_error("Kafka at --brokers " + flags.brokers + " does not answer for topic " +
                             flags.topic);
  }
  const auto traffic = make_traffic(flags, summary.user_prefix, *checker->rules());
  LiveCounters counters;
  Server server({*checker, producer, *traffic, counters, ids, flags.tier},
                run_id + "-" + std::to_string(flags.server));
  PropagationProbe probe(*checker, producer, counters, ids,
                         {summary.user_prefix, flags.probe_campaign});
  LiveView view(counters, stdout);

  const auto begin = steady_clock::now();
  std::atomic<bool> probe_stop{false};
  std::atomic<std::size_t> serving{flags.threads};
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < flags.threads; ++i) {
    workers.emplace_back([&, i] {
      server.serve(i, interrupted);
      serving.fetch_sub(1);
    });
  }
  std::jthread prober;
  if (!flags.probe_campaign.empty()) prober = std::jthread([&] { probe.run(probe_stop); });
  for (auto next = begin + std::chrono::seconds(1); serving.load() > 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (steady_clock::now() < next) continue;
    view.print(lag.messages());
    next += std::chrono::seconds(1);
  }
  workers.clear();
  probe_stop = true;
  if (prober.joinable()) prober.join();
  summary.seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();

  server.finish();
  producer.flush(std::chrono::seconds(10));
  summary.end_offsets = lag.end_offsets();
  summary.drained = drain(lag, view, flags);
  const std::string json = to_json(summary, counters, producer);
  if (!flags.json.empty()) {
    std::ofstream file(flags.json);
    file << json << "\n";
    if (!file.flush()) throw std::runtime_error("--json: cannot write " + flags.json);
  }
  if (!summary.drained) {
    std::fprintf(stderr, interrupted.load()
                             ? "interrupted: whether the updater has caught up is not known\n"
                             : "the updater has not caught up within --drain-seconds\n");
  }
  return summary.drained ? 0 : 1;
}

}  // namespace
}  // namespace ad_server

int main(int argc, char** argv) {
  ad_server::Flags flags;
  CLI::App app("An example ad server that asks libfcap before each impression.");
  add_flags(app, flags);
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGINT, [](int) { ad_server::interrupted = true; });
  std::signal(SIGTERM, [](int) { ad_server::interrupted = true; });
  try {
    return ad_server::run(flags);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fcap-example-ad-server: %s\n", error.what());
    return 1;
  }
}
