#include "updater/watch/redis_watch.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

constexpr std::chrono::hours kLookAgain{1};
constexpr std::chrono::seconds kAskAgain{10};
constexpr std::chrono::seconds kInfoWithin{2};

// For people: which of a cluster's nodes a text is about.
std::string about(const std::string& address, const std::string& text) {
  return address.empty() ? text : fmt::format("{}: {}", address, text);
}

}  // namespace

// It keeps itself alive until it is complete.
class RedisWatch::InfoQuestion final : public redis::Request {
 public:
  static std::shared_ptr<InfoQuestion> make() {
    auto question = std::make_shared<InfoQuestion>();
    question->self_ = question;
    redis::append_command(question->wire, {"INFO"});
    question->deadline = Clock::now() + kInfoWithin;
    return question;
  }
  void on_reply(std::uint32_t /*index*/, const redis::Reply& reply) noexcept override {
    refused = reply.kind == redis::Reply::Kind::kError;
    answered = refused || reply.kind == redis::Reply::Kind::kString;
    text = reply.text;
  }
  void on_done(redis::TransportCode /*code*/) noexcept override {
    const std::shared_ptr<InfoQuestion> self = std::move(self_);
    ended.store(true, std::memory_order_release);
  }

  std::atomic<bool> ended{false};
  bool answered = false;
  bool refused = false;
  std::string text;

 private:
  std::shared_ptr<InfoQuestion> self_;
};

RedisWatch::RedisWatch(std::shared_ptr<redis::Client> client, LogCallback log)
    : client_(std::move(client)), log_(std::move(log)) {}

RedisWatch::~RedisWatch() = default;

void RedisWatch::report(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

void RedisWatch::tick(Clock::time_point now) {
  follow_nodes();
  for (auto& [address, server] : servers_) tick_server(address, server, now);
}

// The only server, or the masters of a cluster as the slot map has them.
void RedisWatch::follow_nodes() {
  if (!client_->is_cluster()) {
    const std::lock_guard lock(mutex_);
    servers_.try_emplace("");
    return;
  }
  const std::vector<redis::ClusterShard> shards = client_->shards();
  if (shards.empty()) return;  // there is no map yet
  const std::lock_guard lock(mutex_);
  std::erase_if(servers_, [&shards](const auto& it) {
    return std::ranges::find(shards, it.first, &redis::ClusterShard::address) == shards.end();
  });
  for (const redis::ClusterShard& shard : shards) servers_.try_emplace(shard.address);
}

void RedisWatch::tick_server(const std::string& address, WatchedServer& server,
                             Clock::time_point now) {
  if (server.question) {
    if (!server.question->ended.load(std::memory_order_acquire)) return;
    note_answer(address, server, *std::exchange(server.question, nullptr));
  }
  const auto node = client_->node_at(address);
  if (client_->is_cluster() && !node) return;
  const std::uint64_t epoch = node ? client_->node_epoch(*node) : client_->connection_epoch();
  if (now < server.due && epoch == server.epoch) return;
  if (!node && !client_->connected()) return;
  server.epoch = epoch;
  server.due = now + kAskAgain;
  server.question = InfoQuestion::make();
  server.question->only_node = node;
  client_->submit(*server.question);
}

void RedisWatch::note_answer(const std::string& address, WatchedServer& server,
                             const InfoQuestion& question) {
  if (!question.answered) return;
  server.due = Clock::now() + kLookAgain;
  if (question.refused) {
    if (!std::exchange(server.refusal_said, true)) {
      report(LogLevel::kWarning,
             about(address, "it is not known whether Redis evicts keys, because INFO is refused: " +
                                question.text));
    }
    return;
  }
  RedisFacts facts = parse_redis_info(question.text);
  std::string trouble;
  for (const Finding& finding : judge_redis(facts)) {
    if (finding.level == Finding::FindingLevel::kOk) continue;
    report(LogLevel::kWarning, about(address, finding.text));
    if (finding.level != Finding::FindingLevel::kError) continue;
    if (!trouble.empty()) trouble += '\n';
    trouble += "redis: " + about(address, finding.text);
  }
  const std::lock_guard lock(mutex_);
  server.facts = std::move(facts);
  server.trouble = std::move(trouble);
}

std::optional<RedisFacts> RedisWatch::facts() const {
  const std::lock_guard lock(mutex_);
  std::optional<RedisFacts> told;
  std::optional<std::uint64_t> evicted;
  for (const auto& [address, server] : servers_) {
    if (!server.facts) continue;
    if (server.facts->evicted_keys) evicted = evicted.value_or(0) + *server.facts->evicted_keys;
    if (!told || (!told->may_evict() && server.facts->may_evict())) told = server.facts;
  }
  if (told) told->evicted_keys = evicted;
  return told;
}

std::string RedisWatch::trouble() const {
  const std::lock_guard lock(mutex_);
  std::string lines;
  for (const auto& [address, server] : servers_) {
    if (server.trouble.empty()) continue;
    if (!lines.empty()) lines += '\n';
    lines += server.trouble;
  }
  return lines;
}

}  // namespace fcap::updater
