#include "updater/watch/topic_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "kafka/topic_questions.h"
#include "updater/watch/log_settings.h"

namespace fcap::updater {
namespace {

// An existing topic is seldom deleted; a missing one is queried at each turn.
constexpr std::chrono::seconds kDeadLettersEvery{60};
constexpr std::chrono::hours kSettingsEvery{1};
// The first messages of so many partitions are read at each turn.
constexpr std::size_t kOldestAtATime = 64;

std::string missing_topic(const std::string& setting, const std::string& topic,
                          std::string_view what_to_do) {
  return fmt::format("{}: the topic {} does not exist: {}", setting, topic, what_to_do);
}

}  // namespace

Result<std::unique_ptr<TopicWatch>> TopicWatch::create(TopicWatchOptions options, LogCallback log) {
  auto questions =
      kafka::TopicQuestions::open(options.connection, options.group_id, options.answer_within);
  if (!questions.ok()) return questions.status();
  std::unique_ptr<TopicWatch> self(
      new TopicWatch(std::move(options), std::move(questions).value(), std::move(log)));
  self->thread_ =
      std::jthread([watch = self.get()](const std::stop_token& stop) { watch->work(stop); });
  return self;
}

TopicWatch::TopicWatch(TopicWatchOptions options, std::unique_ptr<kafka::TopicQuestions> questions,
                       LogCallback log)
    : options_(std::move(options)),
      log_(std::move(log)),
      questions_(std::move(questions)),
      book_(options_.silence_max) {
  seen_.at = began_;
}

TopicWatch::~TopicWatch() = default;

void TopicWatch::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    look(stop);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, options_.interval, [this] { return bounds_.waiting(); });
  }
}

void TopicWatch::look(const std::stop_token& stop) {
  const auto state = questions_->topic(options_.topic);
  if (!state.ok()) {
    unanswered(state.status());
    return answer_bounds(state.status());
  }
  look_at_topic(state.value());
  // A partition that waits for its bounds is not read, so it waits for one query at most.
  answer_bounds({});
  if (stop.stop_requested()) return;
  if (state.value().ok()) {
    look_at_ends(state.value());
    answer_bounds({});
    if (stop.stop_requested()) return;
    look_at_oldest();
    answer_bounds({});
    if (stop.stop_requested()) return;
    look_at_settings();
    answer_bounds({});
    if (stop.stop_requested()) return;
    look_at_group();
    answer_bounds({});
  }
  if (!stop.stop_requested()) look_at_dead_letters();
}

void TopicWatch::ask(std::span<const std::int32_t> partitions) {
  if (partitions.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    bounds_.ask(partitions);
  }
  wake_.notify_all();
}

std::optional<Result<LogBounds>> TopicWatch::answer(std::int32_t partition) const {
  const std::lock_guard lock(mutex_);
  return bounds_.answer(partition);
}

bool TopicWatch::bounds_wanted() const {
  const std::lock_guard lock(mutex_);
  return bounds_.waiting();
}

void TopicWatch::answer_bounds(const Status& unanswered) {
  BoundsBook::Waiting waiting;
  std::set<std::int32_t> without_leader;
  {
    const std::lock_guard lock(mutex_);
    waiting = bounds_.take_waiting();
    without_leader = seen_.without_leader;
  }
  if (waiting.empty()) return;
  LogBoundsAnswers answers;
  std::set<std::int32_t> asked;
  for (const auto& [partition, number] : waiting) {
    // Kafka's client waits for leaders; a partition without one would delay the others' answers.
    if (!unanswered.ok()) {
      answers.emplace(partition, unanswered);
    } else if (without_leader.contains(partition)) {
      answers.emplace(partition, Status::error(StatusCode::kUnavailable, "it has no leader", true));
    } else {
      asked.insert(partition);
    }
  }
  auto found = find_log_bounds(*questions_, options_.topic, asked, options_.retention,
                               base::wall_now(), options_.newest_event, missed_looks_);
  say_misdated(found);
  answers.merge(found);
  const std::lock_guard lock(mutex_);
  bounds_.settle(waiting, answers);
}

void TopicWatch::say_misdated(const LogBoundsAnswers& found) {
  std::string partitions;
  for (const auto& [partition, bounds] : found) {
    if (!bounds.ok() || !bounds.value().misdated) continue;
    partitions += (partitions.empty() ? "" : ", ") + std::to_string(partition);
  }
  if (partitions.empty() || !log_) return;
  log_(
      LogLevel::kWarning,
      fmt::format("topic {}, partitions {}: messages whose Kafka timestamps are before the "
                  "retention may hold events of it, so where the retention is read, all of the log "
                  "is: producers must set timestamps in milliseconds, or leave them to Kafka",
                  options_.topic, partitions));
}

void TopicWatch::unanswered(const Status& status) {
  const std::lock_guard lock(mutex_);
  const bool first = words_.empty();
  words_ = status.text();
  if (first && log_) {
    log_(LogLevel::kWarning, fmt::format("kafka.brokers {}: no broker answers: {}",
                                         options_.connection.brokers, words_));
  }
}

void TopicWatch::say(std::string& line, std::string now) {
  const std::lock_guard lock(mutex_);
  if (line == now) return;
  line = std::move(now);
  if (!line.empty() && log_) log_(LogLevel::kWarning, line);
}

void TopicWatch::look_at_topic(const kafka::TopicState& state) {
  {
    const std::lock_guard lock(mutex_);
    if (!words_.empty() && log_) log_(LogLevel::kInfo, "a broker answers again");
    words_.clear();
    seen_ = {Clock::now(), !state.ok(), state.ok() ? state.partitions : 0};
    seen_.without_leader = state.without_leader;
  }
  if (state.missing()) {
    return say(topic_trouble_,
               missing_topic("kafka.topic", options_.topic, "create it, or correct the setting"));
  }
  if (!state.ok()) {
    return say(topic_trouble_, fmt::format("kafka.topic: {}: {}", options_.topic, state.error()));
  }
  if (state.without_leader.empty()) return say(topic_trouble_, {});
  say(topic_trouble_, fmt::format("kafka.topic: {} of {} partitions of {} have no leader, such as "
                                  "partition {}: start the brokers that hold them",
                                  state.without_leader.size(), state.partitions, options_.topic,
                                  *state.without_leader.begin()));
}

void TopicWatch::look_at_group() {
  {
    const std::lock_guard lock(mutex_);
    if (joined_) return;
  }
  // Any question that only the coordinator answers. Not DescribeConsumerGroups: librdkafka 2.0.2
  // aborts the process when no coordinator is found in time.
  const auto committed = questions_->committed(options_.topic, {0});
  std::string why = committed.ok() ? std::string() : committed.status().text();
  if (committed.ok() && !committed.value().refused.empty()) {
    why = committed.value().refused.begin()->second.text();
  }
  const std::lock_guard lock(mutex_);
  if (joined_) return;
  group_ = fmt::format("the coordinator of group {} does not answer: {}", options_.group_id, why);
  if (!why.empty()) return;
  group_ = fmt::format(
      "the coordinator of group {} answers: the group waits for its other members, or Kafka's "
      "client has not joined it",
      options_.group_id);
}

std::string TopicWatch::group() const {
  const std::lock_guard lock(mutex_);
  return group_;
}

void TopicWatch::look_at_dead_letters() {
  const Clock::time_point now = Clock::now();
  if (options_.dead_letter_topic.empty() || now < dead_letters_due_) return;
  const auto state = questions_->topic(options_.dead_letter_topic);
  if (!state.ok()) return;
  if (state.value().ok()) {
    dead_letters_due_ = now + kDeadLettersEvery;
    return say(dead_letter_trouble_, {});
  }
  say(dead_letter_trouble_,
      state.value().missing()
          ? missing_topic("kafka.dead_letter_topic", options_.dead_letter_topic,
                          "create it, or set it to \"\" to drop messages that are not events")
          : fmt::format("kafka.dead_letter_topic: {}: {}", options_.dead_letter_topic,
                        state.value().error()));
}

void TopicWatch::look_at_settings() {
  const Clock::time_point now = Clock::now();
  if (now < settings_due_) return;
  const auto settings = questions_->settings(options_.topic);
  // An account without the right to query this loses nothing else; check-config --connect reports
  // it.
  settings_due_ = now + kSettingsEvery;
  if (!settings.ok()) return;
  std::string found;
  for (const std::string& line :
       log_retention_findings(options_.topic, settings.value(), options_.retention)) {
    if (!found.empty()) found += '\n';
    found += line;
  }
  say(settings_trouble_, found);
}

void TopicWatch::look_at_ends(const kafka::TopicState& state) {
  std::set<std::int32_t> readable;
  {
    const std::lock_guard lock(mutex_);
    readable = book_.assigned();
  }
  for (const std::int32_t partition : state.without_leader) readable.erase(partition);
  const auto ends = questions_->ends(options_.topic, readable);
  if (!ends.ok()) return;
  {
    const std::lock_guard lock(mutex_);
    book_.set_ends(ends.value().offsets, Clock::now());
  }
  look_at_starts(readable);
}

// While Redis cannot be queried for a mark, work is assumed to begin at the committed offset, or,
// without one, at the beginning of the log.
void TopicWatch::look_at_starts(const std::set<std::int32_t>& readable) {
  std::set<std::int32_t> unknown;
  {
    const std::lock_guard lock(mutex_);
    unknown = book_.without_start();
  }
  std::erase_if(unknown, [&](std::int32_t partition) { return !readable.contains(partition); });
  if (unknown.empty()) return;
  const auto committed = questions_->committed(options_.topic, unknown);
  if (!committed.ok()) return;
  for (const auto& [partition, status] : committed.value().refused) unknown.erase(partition);
  const auto beginnings = questions_->beginnings(options_.topic, unknown);
  if (!beginnings.ok()) return;
  kafka::Offsets starts = beginnings.value().offsets;
  for (auto& [partition, offset] : starts) {
    const auto at = committed.value().offsets.find(partition);
    if (at != committed.value().offsets.end()) offset = std::max(offset, at->second);
  }
  const std::lock_guard lock(mutex_);
  book_.set_starts(starts);
}

void TopicWatch::look_at_oldest() {
  LagBook::Offsets behind;
  {
    const std::lock_guard lock(mutex_);
    behind = book_.behind(kOldestAtATime, Clock::now());
  }
  const auto found =
      questions_->timestamps(options_.topic, behind, [this] { return bounds_wanted(); });
  const std::lock_guard lock(mutex_);
  book_.set_oldest(behind, found, Clock::now());
}

void TopicWatch::set_done(std::span<const PartitionDone> done, bool joined) {
  const std::lock_guard lock(mutex_);
  book_.set_done(done, joined);
  joined_ = joined;
  if (joined) group_.clear();
}

bool TopicWatch::fresh(Clock::time_point now) const {
  return now - questions_->answered().value_or(began_) < options_.silence_max;
}

Lag TopicWatch::lag(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  Lag lag = connected(now) ? book_.lag(now) : Lag{};
  lag.topic = options_.topic;
  return lag;
}

LagBook::Offsets TopicWatch::ends(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return connected(now) ? book_.ends(now) : LagBook::Offsets{};
}

bool TopicWatch::connected(Clock::time_point now) const {
  return questions_->answered() && fresh(now);
}

TopicWatch::TopicLook TopicWatch::topic(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  TopicLook look = seen_;
  look.unreadable = look.unreadable || !fresh(now);
  return look;
}

std::string TopicWatch::trouble(Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  if (!fresh(now)) {
    const Clock::time_point heard = questions_->answered().value_or(began_);
    return fmt::format(
        "kafka.brokers {}: no broker has answered for {} s: {}", options_.connection.brokers,
        std::chrono::duration_cast<std::chrono::seconds>(now - heard).count(), words_);
  }
  std::string lines = topic_trouble_;
  if (!dead_letter_trouble_.empty()) {
    if (!lines.empty()) lines += '\n';
    lines += dead_letter_trouble_;
  }
  return lines;
}

}  // namespace fcap::updater
