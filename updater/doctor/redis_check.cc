#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <fcap/time.h>

#include "base/clock.h"
#include "ledger/user_key.h"
#include "redis/blocking_call.h"
#include "redis/client.h"
#include "redis/config_record.h"
#include "redis/redis_options_check.h"
#include "redis/store_operations.h"
#include "redis/watched_records.h"
#include "updater/doctor/server_checks.h"
#include "updater/options/libraries.h"
#include "updater/watch/redis_facts.h"

namespace fcap::updater {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kAnswerWithin{3};
constexpr std::chrono::seconds kSkewMax{1};
constexpr std::chrono::minutes kSkewFatal{1};
constexpr std::chrono::minutes kProbeLife{1};

// A reply that outlives its call.
struct KeptReply {
  redis::Reply::Kind kind = redis::Reply::Kind::kNil;
  std::string text;
  std::vector<std::string> elements;
  [[nodiscard]] bool is_error() const noexcept { return kind == redis::Reply::Kind::kError; }
};

// A server, and a user that cannot exist whose record it would hold.
struct ProbedServer {
  std::string node;  // its address, in a cluster
  std::string user;
};

// The server, or all masters of a cluster: each has accounts, a clock and settings of its own.
std::vector<ProbedServer> places_of(const redis::Client& client) {
  const std::string user = "!fcap-doctor";
  if (!client.is_cluster()) return {{.node = {}, .user = user}};
  std::vector<ProbedServer> places;
  for (const redis::ClusterShard& shard : client.shards()) {
    const auto has = [&shard](std::uint16_t slot) {
      return std::ranges::any_of(shard.slots, [slot](const redis::SlotRange& range) {
        return range.first <= slot && slot <= range.last;
      });
    };
    ProbedServer& place = places.emplace_back(ProbedServer{.node = shard.address, .user = user});
    for (int n = 1; !has(redis::slot_of("{" + place.user + "}")); ++n) {
      place.user = fmt::format("{}-{}", user, n);
    }
  }
  return places;
}

// What is found out about one place.
class RedisDoctor {
 public:
  RedisDoctor(const Settings& settings, redis::Client& client, ProbedServer place,
              Findings& findings)
      : settings_(settings), client_(client), place_(std::move(place)), findings_(findings) {
    ledger::user_key(settings.ledger.key_prefix, place_.user, user_key_);
  }

  void look() {
    look_at_info();
    look_at_clock();
    look_at_rights();
  }
  void look_at_config();

 private:
  using Level = Finding::FindingLevel;

  void say(Level level, std::string text) {
    if (!place_.node.empty()) text = fmt::format("node {}: {}", place_.node, text);
    findings_.push_back({level, "redis", std::move(text)});
  }
  std::optional<KeptReply> ask(const std::vector<std::string>& words, std::string_view key = {});
  void look_at_info();
  void look_at_clock();
  void look_at_rights();
  void may(const std::vector<std::string>& words, std::string_view key, std::string_view purpose,
           Level level = Level::kError);
  void may_run_script(const std::string& key);
  void may_watch(std::string_view key);
  [[nodiscard]] std::string account() const {
    return settings_.redis.user.empty() ? "default" : settings_.redis.user;
  }

  const Settings& settings_;
  redis::Client& client_;
  const ProbedServer place_;
  std::string user_key_;
  Findings& findings_;
  bool all_allowed_ = true;
};

std::optional<KeptReply> RedisDoctor::ask(const std::vector<std::string>& words,
                                          std::string_view key) {
  const redis::BlockingCall call{{words.begin(), words.end()}, key.empty() ? user_key_ : key};
  std::optional<KeptReply> answer;
  redis::call_and_wait(client_, std::span(&call, 1), kAnswerWithin,
                       [&](std::size_t, const redis::Reply& reply) {
                         answer = KeptReply{reply.kind, std::string(reply.text), {}};
                         for (const redis::Reply& element : reply.elements) {
                           answer->elements.emplace_back(element.text);
                         }
                       });
  return answer;
}

void RedisDoctor::look_at_info() {
  std::string info;
  for (const char* const section : {"server", "memory", "stats", "replication"}) {
    const auto answer = ask({"INFO", section});
    if (!answer) return say(Level::kError, "INFO was not answered: is Redis overloaded?");
    if (answer->is_error()) {
      return say(Level::kWarning,
                 fmt::format("version and eviction policy are unknown, because the account {} may "
                             "not use INFO: ACL SETUSER {} +info ({})",
                             account(), account(), answer->text));
    }
    info += answer->text;
  }
  for (Finding& finding : judge_redis(parse_redis_info(info))) {
    say(finding.level, std::move(finding.text));
  }
}

void RedisDoctor::look_at_clock() {
  const auto answer = ask({"TIME"});
  const auto now = std::chrono::system_clock::now();
  if (!answer || answer->is_error() || answer->elements.size() != 2) return;  // rights are below
  const std::chrono::system_clock::time_point theirs{
      std::chrono::seconds{std::strtoll(answer->elements[0].c_str(), nullptr, 10)} +
      std::chrono::microseconds{std::strtoll(answer->elements[1].c_str(), nullptr, 10)}};
  const auto skew = std::chrono::duration_cast<std::chrono::milliseconds>(theirs - now);
  if (std::chrono::abs(skew) <= kSkewMax) return;
  say(std::chrono::abs(skew) > kSkewFatal ? Level::kError : Level::kWarning,
      fmt::format("its clock is {} ms {} this machine's: synchronize both (NTP)",
                  std::chrono::abs(skew).count(), skew.count() > 0 ? "ahead of" : "behind"));
}

void RedisDoctor::may(const std::vector<std::string>& words, std::string_view key,
                      std::string_view purpose, Level level) {
  const auto answer = ask(words, key);
  if (!answer) {
    all_allowed_ = false;
    return say(Level::kError, fmt::format("{} was not answered", words[0]));
  }
  if (!answer->is_error() || answer->text.starts_with("NOSCRIPT")) return;
  all_allowed_ = false;
  const bool refused = answer->text.starts_with("NOPERM");
  if (answer->text.find("executing the script can't run") != std::string::npos) {
    return say(level, fmt::format("the account {} may not use one of GET, SET, DEL and PEXPIRETIME "
                                  "in a script on {}, needed {}: see \"Accounts\" in "
                                  "docs/operations.md ({})",
                                  account(), key, purpose, answer->text));
  }
  const std::string on = key.empty() ? "" : fmt::format(" on {}", key);
  say(level, refused
                 ? fmt::format("the account {} may not use {}{}, needed {}: see \"Accounts\" "
                               "in docs/operations.md ({})",
                               account(), words[0], on, purpose, answer->text)
                 : fmt::format("{}{}, needed {}, fails: {}", words[0], on, purpose, answer->text));
}

// What compare-and-set does, from writing a key to deleting it.
void RedisDoctor::may_run_script(const std::string& key) {
  const std::string at = std::to_string(to_ms(base::wall_now() + kProbeLife));
  const std::string script(redis::compare_and_set_script());
  constexpr std::string_view kPurpose = "to write marks and to compact records";
  may({"EVALSHA", std::string(redis::compare_and_set_sha()), "1", key, "0", "", "1", at, "0"}, key,
      kPurpose);
  may({"EVAL", script, "1", key, "0", "", "1", at, "0"}, key, kPurpose);
  may({"EVAL", script, "1", key, "1", "1", "2", at, "0"}, key, kPurpose);
  may({"EVAL", script, "1", key, "1", "2", "", at, "0"}, key, kPurpose);
}

void RedisDoctor::may_watch(std::string_view key) {
  struct WatchedRead final : redis::WatchedRecords::Completion {
    void on_record(std::size_t, const StoreOutcome&, std::optional<Instant>) noexcept override {}
    void on_done(StoreCode ended) noexcept override {
      code = ended;
      done.release();
    }
    StoreCode code = StoreCode::kOk;
    std::binary_semaphore done{0};
  };
  WatchedRead read;
  const auto records = redis::make_watched_records(client_);
  if (!records) return;
  records->read(std::span(&key, 1), steady_clock::now() + kAnswerWithin, read);
  read.done.acquire();
  if (read.code != StoreCode::kServerError) return;
  all_allowed_ = false;
  say(Level::kWarning,
      fmt::format("the account {} may not use one of WATCH, MULTI, EXEC, PEXPIRETIME and MGET on "
                  "{}: records are compacted one by one, which costs Redis twice as much; see "
                  "\"Accounts\" in docs/operations.md",
                  account(), key));
}

void RedisDoctor::look_at_rights() {
  const std::string& user = user_key_;
  const std::string own =
      fmt::format("{}:!doctor:{{{}}}", settings_.ledger.key_prefix, place_.user);
  const std::string at = std::to_string(to_ms(base::wall_now() + kProbeLife));
  may({"GET", user}, user, "to read records");
  may({"MGET", user, user}, user, "to read records");
  may({"APPEND", user, ""}, user, "to count events");
  may({"PEXPIREAT", user, at, "NX"}, user, "to let records expire");
  may({"PEXPIREAT", user, at, "GT"}, user, "to let records expire");
  // Empties what was appended, and begins again.
  const std::string script(redis::compare_and_set_script());
  may({"EVAL", script, "1", user, "1", "", "", at, "0"}, user, "to compact records");
  may_run_script(user);
  may_run_script(own);
  may({"TIME"}, {}, "to compare clocks, and by sweep", Level::kWarning);
  may({"SCAN", "0", "MATCH", own, "COUNT", "1"}, {}, "by sweep", Level::kWarning);
  may({"DBSIZE"}, {}, "by sweep", Level::kWarning);
  may({"PTTL", user}, user, "by sweep", Level::kWarning);
  may_watch(user);
  if (client_.is_cluster()) {
    may({"CLUSTER", "NODES"}, {}, "to keep marks in a cluster");
    may({"INFO", "replication"}, {}, "to keep marks in a cluster");
    may({"CLUSTER", "GETKEYSINSLOT", "0", "1"}, {}, "by sweep", Level::kWarning);
  }
  if (all_allowed_) {
    say(Level::kOk, fmt::format("the account {} may do what the updater needs", account()));
  }
}

void RedisDoctor::look_at_config() {
  const std::string key = redis::config_key(settings_.ledger.key_prefix);
  const auto answer = ask({"GET", key}, key);
  if (!answer || answer->kind != redis::Reply::Kind::kString) return;  // not written yet
  const auto recorded = redis::parse_config(answer->text);
  if (recorded.status().code() == StatusCode::kRefused) {
    return say(Level::kError, fmt::format("{}: {}", key, recorded.status().text()));
  }
  if (!recorded.ok()) {
    return say(Level::kError,
               fmt::format("{} was not written by fcap: choose another ledger.key_prefix ({})", key,
                           recorded.status().text()));
  }
  const auto& theirs = recorded.value();
  const LedgerSettings& ledger = settings_.ledger;
  if (theirs.retention == ledger.retention && theirs.null_user_ids == ledger.null_user_ids) return;
  say(Level::kError, fmt::format("{} was written by an updater with another ledger.retention or "
                                 "ledger.null_user_ids: use the same settings for all updaters and "
                                 "Checkers of a prefix ({})",
                                 key, answer->text));
}

}  // namespace

void check_redis_server(const Settings& settings, Findings& findings) {
  const auto say = [&](std::string text) {
    findings.push_back({Finding::FindingLevel::kError, "redis", std::move(text)});
  };
  auto client = redis::Client::create(redis_options(settings, {}));
  if (!client.ok()) return say(client.status().text());
  const auto until = steady_clock::now() + settings.redis.connect_timeout + kAnswerWithin;
  while (!client.value()->connected() && steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  if (!client.value()->connected()) {
    const std::string error = client.value()->last_error();
    return say(fmt::format("redis.addresses {}: no connection: {}",
                           redis::place_of(redis_options(settings, {})), error));
  }
  const std::vector<ProbedServer> places = places_of(*client.value());
  for (const ProbedServer& place : places) {
    RedisDoctor(settings, *client.value(), place, findings).look();
  }
  RedisDoctor(settings, *client.value(), {.node = {}, .user = places.front().user}, findings)
      .look_at_config();
}

}  // namespace fcap::updater
