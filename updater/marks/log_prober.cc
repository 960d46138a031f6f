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
#include "kafka/message.h"

namespace fcap::updater {
namespace {

using LooksClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kAnswer{5};         // for a question about a partition's ends
constexpr std::chrono::milliseconds kMessage{50};  // how often it checks whether to stop
constexpr std::chrono::seconds kMessagesWithin{10};
constexpr std::chrono::seconds kEndWithin{1};

Status look_failed(std::string_view why) {
  return Status::error(StatusCode::kUnavailable, fmt::format("looking at a log: {}", why), true);
}

LogPoint point_of(const rd_kafka_message_t& message) {
  return {message.offset, kafka::timestamp_ms(message),
          hash_message(kafka::key_of(message).value_or(""), kafka::payload_of(message))};
}

}  // namespace

// What the prober and its thread share.
struct LogProber::State {
  explicit State(std::unique_ptr<kafka::LoneConsumer> made) : consumer(std::move(made)) {}

  void run();
  bool stopping();
  void look(const std::vector<Question>& asked);
  void look_at_ends(const std::vector<Question>& asked, std::vector<Answer>& found);
  void read_messages(std::size_t turn, const std::vector<Question>& asked,
                     std::vector<Answer>& found);

  // The answers that wait for a message, by partition, with the message's offset.
  struct Awaited {
    Answer* answer;
    std::int64_t offset;
  };
  static void take_message(const kafka::LoneConsumer::Polled& polled, std::size_t turn,
                           std::map<kafka::TopicPartition, Awaited>& awaited);

  std::unique_ptr<kafka::LoneConsumer> consumer;  // the thread's; destroyed at its end

  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;                // guarded by mutex
  std::vector<Question> questions;  // guarded by mutex
  std::vector<Answer> answers;      // guarded by mutex
};

Result<std::unique_ptr<LogProber>> LogProber::create(Options options) {
  options.defaults = {
      // Only one message of each partition is needed.
      {"queued.min.messages", "1"},
      {"fetch.message.max.bytes", "65536"},
      {"fetch.wait.max.ms", "20"},
      {"reconnect.backoff.max.ms", "2000"},
  };
  auto consumer = kafka::LoneConsumer::create(std::move(options));
  if (!consumer.ok()) return consumer.status();
  auto state = std::make_shared<State>(std::move(consumer).value());
  auto ended = base::start_detached("fcap-logs", [state] {
    state->run();
    state->consumer.reset();
  });
  if (!ended.ok()) return ended.status();
  return std::unique_ptr<LogProber>(new LogProber(std::move(state), std::move(ended).value()));
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
  const std::string id = consumer->cluster_id(kAnswer);
  const std::string cluster = id.empty() ? "" : cluster_word(id);
  Status unanswered;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    LogLook& look = found[i].look;
    look.cluster = cluster;
    if (stopping()) unanswered = look_failed("the updater is stopping");
    // If a broker does not answer, it is not queried again for every partition.
    if (!unanswered.ok()) {
      found[i].status = unanswered;
      continue;
    }
    const auto marks = consumer->watermarks(asked[i].partition, kAnswer);
    if (marks.ok()) {
      look.low = marks.value().low;
      look.high = marks.value().high;
      continue;
    }
    found[i].status = marks.status();
    if (marks.status().code() == StatusCode::kDeadlineExceeded) unanswered = marks.status();
  }
}

void LogProber::State::read_messages(std::size_t turn, const std::vector<Question>& asked,
                                     std::vector<Answer>& found) {
  std::map<kafka::TopicPartition, Awaited> awaited;
  std::vector<kafka::PartitionOffset> from;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    Answer& answer = found[i];
    if (!answer.status.ok() || turn >= asked[i].offsets.size()) continue;
    const std::int64_t offset = asked[i].offsets[turn];
    if (offset < answer.look.low || offset >= answer.look.high) continue;
    if (!awaited.emplace(answer.partition, Awaited{&answer, offset}).second) {
      // Queried twice: the caller no longer needs one of the answers.
      answer.status = look_failed("its partition was asked for twice");
      continue;
    }
    from.push_back({answer.partition, offset});
  }
  if (awaited.empty()) return;
  const Status assigned = consumer->assign(from);
  const auto until = LooksClock::now() + kMessagesWithin;
  while (assigned.ok() && !awaited.empty() && !stopping() && LooksClock::now() < until) {
    take_message(consumer->poll(kMessage), turn, awaited);
  }
  consumer->unassign();
  for (const auto& [partition, waiting] : awaited) {
    waiting.answer->status =
        look_failed(assigned.ok() ? "Kafka sent no message in time" : assigned.text());
  }
}

void LogProber::State::take_message(const kafka::LoneConsumer::Polled& polled, std::size_t turn,
                                    std::map<kafka::TopicPartition, Awaited>& awaited) {
  using Is = kafka::LoneConsumer::Polled::Is;
  const auto waiting = awaited.find(polled.partition);
  if (waiting == awaited.end()) return;
  const auto& [answer, offset] = waiting->second;
  switch (polled.is) {
    case Is::kMessage:
      if (polled.offset < offset) return;  // from an earlier turn
      answer->look.found[turn] = point_of(*polled.message);
      break;
    case Is::kOutOfRange:
    case Is::kError:
      answer->status = look_failed(polled.error.text());
      break;
    case Is::kEnd:
    case Is::kNothing:
      break;
  }
  awaited.erase(waiting);
}

}  // namespace fcap::updater
