#include "updater/marks/log_prober.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/thread.h"
#include "kafka/message.h"

namespace fcap::updater {
namespace {

using LooksClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kAnswer{5};           // for a question about a partition's ends
constexpr std::chrono::milliseconds kMessage{50};    // how often it checks whether to stop
constexpr std::chrono::seconds kMessagesWithin{10};  // one of each partition
constexpr std::chrono::seconds kAllWithin{30};
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
  explicit State(std::unique_ptr<kafka::GrouplessConsumer> made) : consumer(std::move(made)) {}

  void run();
  bool stopping();
  void look(const std::vector<LookQuestion>& asked);
  Result<kafka::GrouplessConsumer::Leaders> find_leaders(const std::vector<LookQuestion>& asked);
  void look_at_broker(std::int32_t broker, const std::vector<LookQuestion>& asked);
  void fail(const std::vector<LookQuestion>& asked, const Status& status);
  void publish(std::vector<LookAnswer>&& found);
  Status look_at_ends(const std::vector<LookQuestion>& asked, std::vector<LookAnswer>& found);
  void read_messages(const std::vector<LookQuestion>& asked, std::vector<LookAnswer>& found);

  // Where an answer has room for a message.
  struct AnswerPlace {
    LookAnswer* answer;
    std::size_t index;
  };
  // The answers that still wait for a message, by partition and offset. A partition for which none
  // waits is not in it.
  using Wanted = std::map<std::int32_t, std::map<std::int64_t, std::vector<AnswerPlace>>>;
  void read_one_of_each(Wanted& wanted);
  static bool take_message(const kafka::GrouplessConsumer::Polled& polled, Wanted& wanted);
  static void give_up(std::int32_t partition, const Status& status, Wanted& wanted);

  std::unique_ptr<kafka::GrouplessConsumer> consumer;  // the thread's; destroyed at its end
  std::set<std::int32_t> silent;  // the thread's: brokers that did not answer the last time
  // The thread's: the brokers that led when Kafka last said so.
  std::map<std::int32_t, std::int32_t> led_last;

  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;                    // guarded by mutex
  std::vector<LookQuestion> questions;  // guarded by mutex
  std::vector<LookAnswer> answers;      // guarded by mutex
};

Result<std::unique_ptr<LogProber>> LogProber::create(Options options) {
  options.defaults = {
      // Only one message of each partition is needed.
      {"queued.min.messages", "1"},
      {"fetch.message.max.bytes", "65536"},
      {"fetch.wait.max.ms", "20"},
      {"reconnect.backoff.max.ms", "2000"},
      // Less than kAnswer: a frozen broker is given up, and not asked again, after one question.
      {"socket.timeout.ms", "4000"},
  };
  auto consumer = kafka::GrouplessConsumer::create(std::move(options));
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

void LogProber::ask(LookQuestion question) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->questions.push_back(std::move(question));
  }
  state_->changed.notify_all();
}

std::optional<LogLooks::LookAnswer> LogProber::take() {
  const std::lock_guard lock(state_->mutex);
  if (state_->answers.empty()) return std::nullopt;
  LookAnswer answer = std::move(state_->answers.back());
  state_->answers.pop_back();
  return answer;
}

bool LogProber::State::stopping() {
  const std::lock_guard lock(mutex);
  return stop;
}

void LogProber::State::run() {
  while (true) {
    std::vector<LookQuestion> asked;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stop || !questions.empty(); });
      if (stop) return;
      asked.swap(questions);
    }
    look(asked);
  }
}

void LogProber::State::publish(std::vector<LookAnswer>&& found) {
  const std::lock_guard lock(mutex);
  for (LookAnswer& answer : found) answers.push_back(std::move(answer));
}

void LogProber::State::fail(const std::vector<LookQuestion>& asked, const Status& status) {
  std::vector<LookAnswer> failed;
  for (const LookQuestion& question : asked) {
    LookAnswer& answer = failed.emplace_back();
    answer.partition = question.partition;
    answer.ticket = question.ticket;
    answer.status = status;
  }
  publish(std::move(failed));
}

// A broker that does not answer, or a partition without one, delays no answer of the other brokers:
// each is asked for its own partitions, and those that were silent the last time come last.
void LogProber::State::look(const std::vector<LookQuestion>& asked) {
  const auto leaders = find_leaders(asked);
  if (!leaders.ok()) return fail(asked, leaders.status());
  std::map<std::int32_t, std::vector<LookQuestion>> by_broker;
  for (const LookQuestion& question : asked) {
    const Result<std::int32_t>& leader = leaders.value().at(question.partition);
    if (leader.ok()) {
      by_broker[leader.value()].push_back(question);
    } else {
      fail({question}, leader.status());
    }
  }
  const std::set<std::int32_t> last = silent;
  for (const bool turn_of_silent : {false, true}) {
    for (const auto& [broker, of_broker] : by_broker) {
      if (last.contains(broker) == turn_of_silent) look_at_broker(broker, of_broker);
    }
  }
}

// librdkafka asks any broker that it is connected to. If that one is frozen, the others may still
// answer for what they led before.
Result<kafka::GrouplessConsumer::Leaders> LogProber::State::find_leaders(
    const std::vector<LookQuestion>& asked) {
  std::vector<std::int32_t> partitions;
  partitions.reserve(asked.size());
  for (const LookQuestion& question : asked) partitions.push_back(question.partition);
  auto found = consumer->leaders(partitions, kAnswer);
  if (found.ok()) {
    for (const auto& [partition, leader] : found.value()) {
      if (leader.ok()) led_last.insert_or_assign(partition, leader.value());
    }
    return found;
  }
  if (found.status().code() != StatusCode::kDeadlineExceeded) return found;
  kafka::GrouplessConsumer::Leaders leaders;
  for (const std::int32_t partition : partitions) {
    const auto last = led_last.find(partition);
    leaders.emplace(partition, last != led_last.end() ? Result<std::int32_t>(last->second)
                                                      : Result<std::int32_t>(found.status()));
  }
  return leaders;
}

void LogProber::State::look_at_broker(std::int32_t broker, const std::vector<LookQuestion>& asked) {
  std::vector<LookAnswer> found;
  for (const LookQuestion& question : asked) {
    LookAnswer& answer = found.emplace_back();
    answer.partition = question.partition;
    answer.ticket = question.ticket;
    answer.look.found.resize(question.offsets.size());
  }
  const Status status =
      stopping() ? look_failed("the updater is stopping") : look_at_ends(asked, found);
  if (status.code() == StatusCode::kDeadlineExceeded) {
    silent.insert(broker);
  } else {
    silent.erase(broker);
  }
  if (!status.ok()) return fail(asked, status);
  read_messages(asked, found);
  publish(std::move(found));
}

Status LogProber::State::look_at_ends(const std::vector<LookQuestion>& asked,
                                      std::vector<LookAnswer>& found) {
  const std::string id = consumer->cluster_id(kAnswer);
  const std::string cluster = id.empty() ? "" : cluster_word(id);
  std::set<std::int32_t> partitions;
  for (const LookQuestion& question : asked) partitions.insert(question.partition);
  const std::vector<std::int32_t> listed(partitions.begin(), partitions.end());
  const auto ends = consumer->watermarks(listed, kAnswer);
  if (!ends.ok()) return ends.status();
  for (LookAnswer& answer : found) {
    answer.look.cluster = cluster;
    const Result<kafka::Watermarks>& marks = ends.value().at(answer.partition);
    if (marks.ok()) {
      answer.look.low = marks.value().low;
      answer.look.high = marks.value().high;
    } else {
      answer.status = marks.status();
    }
  }
  return {};
}

// Questions about one partition may come together: in a cluster, each shard has a mark.
void LogProber::State::read_messages(const std::vector<LookQuestion>& asked,
                                     std::vector<LookAnswer>& found) {
  Wanted wanted;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    LookAnswer& answer = found[i];
    if (!answer.status.ok()) continue;
    for (std::size_t index = 0; index < asked[i].offsets.size(); ++index) {
      const std::int64_t offset = asked[i].offsets[index];
      if (offset < answer.look.low || offset >= answer.look.high) continue;
      wanted[answer.partition][offset].push_back({&answer, index});
    }
  }
  const auto until = LooksClock::now() + kAllWithin;
  while (!wanted.empty() && !stopping() && LooksClock::now() < until) read_one_of_each(wanted);
  while (!wanted.empty()) {
    give_up(wanted.begin()->first, look_failed("Kafka did not send all messages in time"), wanted);
  }
}

// The message at the lowest offset that is wanted of each partition.
void LogProber::State::read_one_of_each(Wanted& wanted) {
  std::set<std::int32_t> awaited;
  std::vector<kafka::PartitionOffset> from;
  for (const auto& [partition, offsets] : wanted) {
    awaited.insert(partition);
    from.push_back({partition, offsets.begin()->first});
  }
  const Status assigned = consumer->assign(from);
  const auto until = LooksClock::now() + kMessagesWithin;
  while (assigned.ok() && !awaited.empty() && !stopping() && LooksClock::now() < until) {
    const kafka::GrouplessConsumer::Polled polled = consumer->poll(kMessage);
    if (!awaited.contains(polled.partition)) continue;
    if (take_message(polled, wanted)) awaited.erase(polled.partition);
  }
  consumer->unassign();
  for (const std::int32_t partition : awaited) {
    give_up(partition,
            look_failed(assigned.ok() ? "Kafka sent no message in time" : assigned.text()), wanted);
  }
}

// False: it is not what is awaited of its partition.
bool LogProber::State::take_message(const kafka::GrouplessConsumer::Polled& polled,
                                    Wanted& wanted) {
  using Is = kafka::GrouplessConsumer::Polled::PolledKind;
  auto& offsets = wanted.at(polled.partition);
  switch (polled.is) {
    case Is::kMessage: {
      if (polled.offset < offsets.begin()->first) return false;  // from an earlier turn
      const LogPoint point = point_of(*polled.message);
      // It is the first one at or after each of these offsets.
      while (!offsets.empty() && offsets.begin()->first <= point.offset) {
        for (const AnswerPlace& place : offsets.begin()->second) {
          place.answer->look.found[place.index] = point;
        }
        offsets.erase(offsets.begin());
      }
      break;
    }
    case Is::kOutOfRange:
    case Is::kError:
      give_up(polled.partition, look_failed(polled.error.text()), wanted);
      return true;
    case Is::kEnd:
    case Is::kNothing:
      offsets.erase(offsets.begin());
      break;
  }
  if (offsets.empty()) wanted.erase(polled.partition);
  return true;
}

void LogProber::State::give_up(std::int32_t partition, const Status& status, Wanted& wanted) {
  for (const auto& [offset, places] : wanted.at(partition)) {
    for (const AnswerPlace& place : places) place.answer->status = status;
  }
  wanted.erase(partition);
}

}  // namespace fcap::updater
