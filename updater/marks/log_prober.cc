#include "updater/marks/log_prober.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/thread.h"
#include "kafka/handles.h"
#include "kafka/lone_consumer.h"
#include "kafka/partition_lists.h"

namespace fcap::updater {
namespace {

using LooksClock = std::chrono::steady_clock;
constexpr int kAnswerMs = 5000;  // for a question about a partition's ends
constexpr int kMessageMs = 50;   // how often it checks whether to stop
constexpr std::chrono::seconds kMessagesWithin{10};
constexpr std::chrono::seconds kEndWithin{1};

Status looks_error(std::string_view doing, rd_kafka_resp_err_t code) {
  return Status::error(StatusCode::kUnavailable,
                       fmt::format("{}: {}", doing, rd_kafka_err2str(code)), true);
}

LogPoint point_of(const rd_kafka_message_t& message) {
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t ms = rd_kafka_message_timestamp(&message, &type);
  return {message.offset, type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : ms,
          hash_message({static_cast<const char*>(message.key), message.key_len},
                       {static_cast<const char*>(message.payload), message.len})};
}

}  // namespace

/// What the prober and its thread share.
struct LogProber::State {
  explicit State(Options o) : options(std::move(o)) {}

  void run();
  bool stopping();
  void look(const std::vector<Question>& asked);
  [[nodiscard]] const std::string& topic_of(kafka::TopicPartition partition) const {
    return kafka::name_of(options.topics, partition.topic);
  }
  void look_at_ends(const std::vector<Question>& asked, std::vector<Answer>& found);
  void read_messages(std::size_t turn, const std::vector<Question>& asked,
                     std::vector<Answer>& found);

  /// The answers that wait for a message, by partition, with the message's offset.
  struct Awaited {
    Answer* answer;
    std::int64_t offset;
  };
  void take_message(const rd_kafka_message_t& message, std::size_t turn,
                    std::map<kafka::TopicPartition, Awaited>& awaited);

  const Options options;
  kafka::LoneConsumer consumer;  // the thread's; destroyed at its end

  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;                // guarded by mutex
  std::vector<Question> questions;  // guarded by mutex
  std::vector<Answer> answers;      // guarded by mutex
};

Result<std::unique_ptr<LogProber>> LogProber::create(Options options) {
  const kafka::Properties defaults = {
      // Only one message of each partition is needed.
      {"queued.min.messages", "1"},
      {"fetch.message.max.bytes", "65536"},
      {"fetch.wait.max.ms", "20"},
      {"reconnect.backoff.max.ms", "2000"},
  };
  auto consumer = kafka::make_lone_consumer(options.connection, options.group_id, defaults);
  if (!consumer.ok()) return consumer.status();
  auto state = std::make_shared<State>(std::move(options));
  state->consumer = std::move(consumer).value();
  auto ended = std::make_shared<std::promise<void>>();
  std::unique_ptr<LogProber> self(new LogProber(state, ended->get_future()));
  auto thread = base::start_thread("fcap-logs", [state, ended] {
    state->run();
    state->consumer.reset();
    ended->set_value();
  });
  if (!thread.ok()) return thread.status();
  std::move(thread).value().detach();
  return self;
}

LogProber::~LogProber() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  (void)ended_.wait_for(kEndWithin);
}

void LogProber::ask(Question question) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->questions.push_back(std::move(question));
  }
  state_->changed.notify_all();
}

std::optional<LogLooks::Answer> LogProber::take() {
  const std::lock_guard lock(state_->mutex);
  if (state_->answers.empty()) return std::nullopt;
  Answer answer = std::move(state_->answers.back());
  state_->answers.pop_back();
  return answer;
}

bool LogProber::State::stopping() {
  const std::lock_guard lock(mutex);
  return stop;
}

void LogProber::State::run() {
  while (true) {
    std::vector<Question> asked;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stop || !questions.empty(); });
      if (stop) return;
      asked.swap(questions);
    }
    look(asked);
  }
}

void LogProber::State::look(const std::vector<Question>& asked) {
  std::vector<Answer> found;
  std::size_t turns = 0;
  for (const Question& question : asked) {
    Answer& answer = found.emplace_back();
    answer.partition = question.partition;
    answer.ticket = question.ticket;
    answer.look.found.resize(question.offsets.size());
    turns = std::max(turns, question.offsets.size());
  }
  look_at_ends(asked, found);
  for (std::size_t turn = 0; turn < turns; ++turn) read_messages(turn, asked, found);
  const std::lock_guard lock(mutex);
  for (Answer& answer : found) answers.push_back(std::move(answer));
}

void LogProber::State::look_at_ends(const std::vector<Question>& asked,
                                    std::vector<Answer>& found) {
  std::string cluster;
  if (char* id = rd_kafka_clusterid(consumer.get(), kAnswerMs)) {
    cluster = cluster_word(id);
    rd_kafka_mem_free(consumer.get(), id);
  }
  Status unanswered;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    LogLook& look = found[i].look;
    look.cluster = cluster;
    if (stopping()) unanswered = looks_error("stopping", RD_KAFKA_RESP_ERR__DESTROY);
    // If a broker does not answer, it is not queried again for every partition.
    if (!unanswered.ok()) {
      found[i].status = unanswered;
      continue;
    }
    const auto code = rd_kafka_query_watermark_offsets(
        consumer.get(), topic_of(asked[i].partition).c_str(), asked[i].partition.number, &look.low,
        &look.high, kAnswerMs);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    found[i].status = looks_error("asking for a partition's ends", code);
    if (code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TRANSPORT) {
      unanswered = found[i].status;
    }
  }
}

void LogProber::State::read_messages(std::size_t turn, const std::vector<Question>& asked,
                                     std::vector<Answer>& found) {
  std::map<kafka::TopicPartition, Awaited> awaited;
  const kafka::Ptr<rd_kafka_topic_partition_list_t> list(
      rd_kafka_topic_partition_list_new(static_cast<int>(asked.size())));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Answer& answer = found[i];
    if (!answer.status.ok() || turn >= asked[i].offsets.size()) continue;
    const std::int64_t offset = asked[i].offsets[turn];
    if (offset < answer.look.low || offset >= answer.look.high) continue;
    if (!awaited.emplace(answer.partition, Awaited{&answer, offset}).second) {
      // Queried twice: the caller no longer needs one of the answers.
      answer.status = looks_error("looking at a log", RD_KAFKA_RESP_ERR__CONFLICT);
      continue;
    }
    rd_kafka_topic_partition_list_add(list.get(), topic_of(answer.partition).c_str(),
                                      answer.partition.number)
        ->offset = offset;
  }
  if (awaited.empty()) return;
  const auto code = rd_kafka_assign(consumer.get(), list.get());
  const auto until = LooksClock::now() + kMessagesWithin;
  while (code == RD_KAFKA_RESP_ERR_NO_ERROR && !awaited.empty() && !stopping() &&
         LooksClock::now() < until) {
    const kafka::Ptr<rd_kafka_message_t> message(
        rd_kafka_consumer_poll(consumer.get(), kMessageMs));
    if (message) take_message(*message, turn, awaited);
  }
  rd_kafka_assign(consumer.get(), nullptr);
  for (const auto& [partition, waiting] : awaited) {
    waiting.answer->status =
        looks_error("looking at a log",
                    code == RD_KAFKA_RESP_ERR_NO_ERROR ? RD_KAFKA_RESP_ERR__TIMED_OUT : code);
  }
}

void LogProber::State::take_message(const rd_kafka_message_t& message, std::size_t turn,
                                    std::map<kafka::TopicPartition, Awaited>& awaited) {
  const auto waiting = awaited.find(kafka::partition_of(options.topics, message));
  if (waiting == awaited.end()) return;
  const auto& [answer, offset] = waiting->second;
  if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (message.offset < offset) return;  // from an earlier turn
    answer->look.found[turn] = point_of(message);
  } else if (message.err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    answer->status = looks_error("looking at a log", message.err);
  }
  awaited.erase(waiting);
}

}  // namespace fcap::updater
