#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include <fcap/defaults.h>
#include <fcap/log.h>
#include <fcap/status.h>
#include <fcap/time.h>

#include "kafka/conf.h"
#include "updater/watch/lag_book.h"
#include "updater/watch/log_bounds.h"

namespace fcap::kafka {
class TopicQuestions;
struct TopicState;
}  // namespace fcap::kafka

namespace fcap::updater {

struct TopicWatchOptions {
  kafka::ConnectionOptions connection;
  std::string topic;
  std::string dead_letter_topic;  ///< empty: no dead letters are sent
  std::string group_id;
  std::chrono::milliseconds retention = kDefaultRetention;
  /// Reads messages, on the watch's thread; empty: Kafka's times are believed.
  NewestEvent newest_event = {};
  std::chrono::milliseconds interval{2000};
  std::chrono::milliseconds answer_within{3000};
  /// Answers that are older than this count as unknown.
  std::chrono::milliseconds silence_max{8000};
};

/// Queries Kafka about the topic, on a thread and a connection of its own, so that a slow, frozen
/// or dead broker blocks nothing else. Every few seconds it queries whether a broker answers,
/// whether the topic exists and has leaders, where the assigned partitions end, and how old the
/// first message is that is not done. So the answers are right even while nothing is read because
/// Redis is unavailable or partitions are paused. On request it queries where reading of partitions
/// may begin, for all of them together.
///
/// Thread safety: everything from any thread.
class TopicWatch final : public OffsetSource {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts asking.
  static Result<std::unique_ptr<TopicWatch>> create(TopicWatchOptions options, LogCallback log);
  /// Waits for the pending query.
  ~TopicWatch();
  TopicWatch(const TopicWatch&) = delete;
  TopicWatch& operator=(const TopicWatch&) = delete;

  /// Starts no more queries, so that the destructor waits less.
  void request_stop() noexcept { thread_.request_stop(); }

  /// Sets which partitions are assigned and how far each is done. `joined`: the group has assigned
  /// partitions to this member, even if none.
  void set_done(std::span<const PartitionDone> done, bool joined);

  void ask(std::span<const std::int32_t> partitions) override;
  [[nodiscard]] std::optional<Result<LogBounds>> answer(std::int32_t partition) const override;

  [[nodiscard]] Lag lag(Clock::time_point now) const;
  /// Where the assigned partitions end, as far as Kafka has said so within `silence_max`.
  [[nodiscard]] LagBook::Offsets ends(Clock::time_point now) const;
  /// Whether a broker has answered within `silence_max`.
  [[nodiscard]] bool connected(Clock::time_point now) const;
  /// The result of the last query about the topic.
  struct TopicLook {
    Clock::time_point at;         ///< when it was answered; at first: the start
    bool unreadable = false;      ///< the whole topic: no broker answers or serves it
    std::int32_t partitions = 0;  ///< how many it has; 0: not known
    std::set<std::int32_t> without_leader = {};
  };
  [[nodiscard]] TopicLook topic(Clock::time_point now) const;
  /// What the group's coordinator says of the group, or why it says nothing, in one line. Asked for
  /// only while the group has assigned nothing to this member; otherwise empty.
  [[nodiscard]] std::string group() const;
  /// What is wrong, for /readyz: one line each, naming what to change; empty: nothing.
  [[nodiscard]] std::string trouble(Clock::time_point now) const;

 private:
  TopicWatch(TopicWatchOptions options, std::unique_ptr<kafka::TopicQuestions> questions,
             LogCallback log);
  void work(const std::stop_token& stop);
  void look(const std::stop_token& stop);
  void look_at_topic(const kafka::TopicState& state);
  void answer_bounds(const Status& unanswered);
  [[nodiscard]] bool bounds_wanted() const;
  void say_misdated(const LogBoundsAnswers& found);
  void look_at_dead_letters();
  void look_at_settings();
  void look_at_ends(const kafka::TopicState& state);
  void look_at_starts(const std::set<std::int32_t>& readable);
  void look_at_oldest();
  void look_at_group();
  void answered();
  void unanswered(const Status& status);
  void say(std::string& line, std::string now);
  [[nodiscard]] bool fresh(Clock::time_point now) const;

  const TopicWatchOptions options_;
  const LogCallback log_;
  const Clock::time_point began_ = Clock::now();
  std::unique_ptr<kafka::TopicQuestions> questions_;  // the thread's own
  Clock::time_point dead_letters_due_;                // the thread's own
  Clock::time_point settings_due_;                    // the thread's own
  MissedLooks missed_looks_;                          // the thread's own

  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  LagBook book_;  // guarded by mutex_, as is what follows
  bool joined_ = false;
  std::string group_;
  BoundsBook bounds_;
  TopicLook seen_;
  std::string words_;  // why no broker answers
  std::string topic_trouble_;
  std::string dead_letter_trouble_;
  std::string settings_trouble_;

  std::jthread thread_;
};

}  // namespace fcap::updater
