#include "updater/watch/redis_watch.h"

#include <atomic>
#include <utility>

namespace fcap::updater {
namespace {

constexpr std::chrono::hours kLookAgain{1};
constexpr std::chrono::seconds kAskAgain{10};
constexpr std::chrono::seconds kInfoWithin{2};

}  // namespace

// It keeps itself alive until it is complete.
class RedisWatch::Question final : public redis::Request {
 public:
  static std::shared_ptr<Question> make() {
    auto question = std::make_shared<Question>();
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
    const std::shared_ptr<Question> self = std::move(self_);
    ended.store(true, std::memory_order_release);
  }

  std::atomic<bool> ended{false};
  bool answered = false;
  bool refused = false;
  std::string text;

 private:
  std::shared_ptr<Question> self_;
};

RedisWatch::RedisWatch(std::shared_ptr<redis::Client> client, LogCallback log)
    : client_(std::move(client)), log_(std::move(log)) {}

RedisWatch::~RedisWatch() = default;

void RedisWatch::report(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

void RedisWatch::poll(Clock::time_point now) {
  if (question_) {
    if (!question_->ended.load(std::memory_order_acquire)) return;
    take(*std::exchange(question_, nullptr));
  }
  const std::uint64_t epoch = client_->connection_epoch();
  if ((now < due_ && epoch == epoch_) || !client_->connected()) return;
  epoch_ = epoch;
  due_ = now + kAskAgain;
  question_ = Question::make();
  client_->submit(*question_);
}

void RedisWatch::take(const Question& question) {
  if (!question.answered) return;
  due_ = Clock::now() + kLookAgain;
  if (question.refused) {
    if (!std::exchange(refusal_said_, true)) {
      report(LogLevel::kWarning,
             "it is not known whether Redis evicts keys, because INFO is "
             "refused: " +
                 question.text);
    }
    return;
  }
  RedisFacts facts = parse_redis_info(question.text);
  std::string trouble;
  for (const Finding& finding : judge_redis(facts)) {
    if (finding.level == Finding::Level::kOk) continue;
    report(LogLevel::kWarning, finding.text);
    if (finding.level != Finding::Level::kError) continue;
    if (!trouble.empty()) trouble += '\n';
    trouble += "redis: " + finding.text;
  }
  const std::lock_guard lock(mutex_);
  facts_ = std::move(facts);
  trouble_ = std::move(trouble);
}

std::optional<RedisFacts> RedisWatch::facts() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

std::string RedisWatch::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace fcap::updater
