#include "updater/pipeline/partition_questions.h"

#include <utility>

#include <fmt/format.h>

namespace fcap::updater {

using OffsetQuery = Partition::PartitionCheck::OffsetQuery;

PartitionQuestions::PartitionQuestions(OffsetSource& source, const MarkOptions& options,
                                       Partitions& partitions, PartitionTroubles& troubles,
                                       ExpiredBook& expired, Metrics& metrics, LogCallback log)
    : source_(&source),
      log_interval_(options.log_interval),
      log_interval_min_(options.log_interval_min),
      partitions_(&partitions),
      troubles_(&troubles),
      expired_(&expired),
      metrics_(&metrics),
      log_(std::move(log)) {}

void PartitionQuestions::report(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

// --- Bounds.

void PartitionQuestions::ask_bounds(std::span<const std::int32_t> partitions) {
  for (const std::int32_t id : partitions) {
    partitions_->at(id).check().query = OffsetQuery::kYes;
  }
  source_->ask(partitions);
}

std::optional<Result<LogBounds>> PartitionQuestions::answer_of(Partition& p) {
  OffsetQuery& query = p.check().query;
  if (query == OffsetQuery::kNo) {
    query = OffsetQuery::kSoon;
    to_ask_.push_back(p.id());
  }
  if (query == OffsetQuery::kSoon) return std::nullopt;
  std::optional<Result<LogBounds>> answer = source_->answer(p.id());
  if (answer) query = OffsetQuery::kNo;
  return answer;
}

std::optional<LogBounds> PartitionQuestions::bounds_of(Partition& p, Clock::time_point now) {
  // The answer about a jump may be about a log that no longer exists.
  if (p.jump() && p.phase() != PartitionPhase::kAsking) p.check().query = OffsetQuery::kNo;
  p.wait_in(PartitionPhase::kAsking);
  const std::optional<Result<LogBounds>> answer = answer_of(p);
  if (answer && answer->ok()) return answer->value();
  troubles_->await_kafka(p, now);
  if (!answer) return std::nullopt;
  p.wait_in(PartitionPhase::kChecking);
  troubles_->failed(p, now, "cannot find where to begin: " + answer->status().text());
  return std::nullopt;
}

void PartitionQuestions::send() {
  source_->ask(to_ask_);
  for (const std::int32_t id : to_ask_) {
    const auto found = partitions_->find(id);
    if (found != partitions_->end()) found->second.check().query = OffsetQuery::kYes;
  }
  to_ask_.clear();
}

void PartitionQuestions::judge_jump(Partition& p, Clock::time_point now) {
  constexpr std::chrono::milliseconds kAskAgain{1000};
  if (!p.jump() || now < p.jump()->due) return;
  // What was asked before may be answered from before the jump.
  if (!std::exchange(p.jump()->asked, true)) p.check().query = OffsetQuery::kNo;
  const auto answer = answer_of(p);
  if (!answer) return;
  if (!answer->ok()) {
    // Without an answer nothing is said: a statement that messages have expired stands until the
    // retention has passed them, so it must not be made by mistake.
    p.jump()->due = now + kAskAgain;
    return;
  }
  const Partition::Jump jump = p.take_jump();
  // If the log does not begin later, no message at these offsets has been deleted.
  if (answer->value().log_start > jump.from) expired_->jumped(p.id(), jump);
}

// --- Whether the log is the one that was read.

std::uint64_t PartitionQuestions::look_for(std::int32_t partition, const KnownLog& known) {
  LogLooks::LookQuestion question{.partition = partition, .ticket = ++looks_asked_};
  for (const LogPoint& point : known.points) question.offsets.push_back(point.offset);
  looks_->ask(std::move(question));
  return looks_asked_;
}

void PartitionQuestions::look_if_due(Partition& p, std::int64_t reached, Clock::time_point now) {
  LogWatch& log = p.log();
  const bool under_way = log.look && log.look->ticket != 0;
  if (looks_ == nullptr || under_way || now < log.due || now < log.not_before) return;
  // A look that failed is repeated, for the same messages.
  if (!log.look) log.start_look(reached);
  log.due = now + log_interval_;
  log.not_before = now + log_interval_min_;
  log.look->ticket = look_for(p.id(), log.look->known);
}

void PartitionQuestions::take_looks(Clock::time_point now, const TakeLook& take_other) {
  if (looks_ == nullptr) return;
  while (const auto answer = looks_->take()) {
    if (take_other(*answer)) continue;
    const auto found = partitions_->find(answer->partition);
    if (found == partitions_->end()) continue;
    const LogWatch& log = found->second.log();
    if (log.look && log.look->ticket == answer->ticket) take_look(found->second, *answer, now);
  }
}

void PartitionQuestions::take_look(Partition& p, const LogLooks::LookAnswer& answer,
                                   Clock::time_point now) {
  if (!answer.status.ok()) {
    p.log().look->ticket = 0;
    p.log().due = now;
    return;
  }
  const LogVerdict verdict = judge_log(p.log().look->known, answer.look);
  p.log().end_look(verdict);
  p.log().set_cluster(answer.look.cluster);
  if (verdict.is == LogVerdict::LogMatch::kUnknown) say_unverified(p, verdict);
  if (verdict.is != LogVerdict::LogMatch::kAnother) return;
  p.check().other_log = verdict.why;
  // Kafka must say where the other log begins. A check that is in progress asks for it too.
  if (p.phase() != PartitionPhase::kChecking) p.wait_in(PartitionPhase::kAsking);
}

void PartitionQuestions::begin_other_log(Partition& p, std::int64_t start, std::uint64_t stamp) {
  metrics_->offset_resets.add();
  report(LogLevel::kError,
         fmt::format("partition {}: this is no longer the log that was read: {}; reading from the "
                     "start of retention, offset {}",
                     p.id(), *p.check().other_log, start));
  p.check().other_log.reset();
  const std::string cluster = p.log().cluster();
  p.close_range(stamp);
  p.log().forget();
  p.forget_jumps();
  p.begin(start);
  p.log().set_cluster(cluster);
  p.wait_in(PartitionPhase::kConfirming);
}

void PartitionQuestions::say_unverified(Partition& p, const LogVerdict& verdict) {
  if (std::exchange(p.log().said_unverified, true)) return;
  metrics_->log_unverified.add();
  report(LogLevel::kWarning,
         fmt::format(
             "partition {}: assuming that this is the log that was read before; unverified: {}",
             p.id(), verdict.why));
}

}  // namespace fcap::updater
