#include "updater/pipeline/updater.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "updater/pipeline/cluster_partition_set.h"
#include "updater/pipeline/message_view.h"

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTurn{20};      // how often the loop turns when nothing happens
constexpr milliseconds kIdlePoll{50};  // the wait for a first message when nothing is in flight
constexpr milliseconds kFillPoll{1};   // the same while the records of a gap's users are being read
constexpr milliseconds kLiveLate{20};  // a live batch that took longer to be written is late
constexpr milliseconds kLagInterval{1000};
constexpr milliseconds kAskDecoderAgain{200};
constexpr milliseconds kLastMarks{1000};  // how long the last marks may take at a revoke

void count(kafka::ConsumerEvent event, Metrics& metrics) {
  switch (event) {
    case kafka::ConsumerEvent::kCommitted:
      return metrics.commits.add();
    case kafka::ConsumerEvent::kCommitFailed:
      return metrics.commit_failures.add();
    case kafka::ConsumerEvent::kRebalanced:
      return metrics.rebalances.add();
  }
}

MarkOptions mark_options(const UpdaterOptions& options) {
  MarkOptions marks = options.mark;
  marks.key_prefix = options.key_prefix;
  marks.group_id = options.consumer.group_id;
  marks.topic = options.consumer.topic;
  marks.retention = options.intake.retention;
  return marks;
}

}  // namespace

Updater::Updater(UpdaterOptions options, UpdaterParts parts, Metrics& metrics)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      metrics_(&metrics),
      intake_(*parts_.decoder, options_.intake),
      coalescer_({options_.key_prefix, options_.intake.retention}),
      partitions_(make_partitions(mark_options(options_))),
      writer_(*parts_.store, parts_.hook, options_.write, metrics, parts_.log, parts_.epoch),
      letters_(parts_.dead_letters, options_.dead_letters, metrics, parts_.log),
      rejections_(options_.rejections, parts_.log),
      messages_(options_.batch_messages_max) {
  writer_.set_passed([this](const Batch& batch) {
    if (batch.gap_ticket != 0) return !filler_ || !filler_->current(batch);
    return std::none_of(batch.ranges.begin(), batch.ranges.end(), [this](const auto& range) {
      return partitions_->current(range.partition, range.generation);
    });
  });
  if (partitions_->by_slot()) {
    writer_.set_away(
        [this](std::string_view key) { return partitions_->gives_up(redis::slot_of(key)); });
  }
}

std::unique_ptr<PartitionSet> Updater::make_partitions(MarkOptions marks) {
  OffsetSource& source = *this;
  if (parts_.cluster) {
    return std::make_unique<ClusterPartitionSet>(*parts_.store, parts_.cluster, parts_.epoch,
                                                 source, std::move(marks), *metrics_, parts_.log);
  }
  return std::make_unique<PartitionSet>(*parts_.store, parts_.epoch, source, std::move(marks),
                                        *metrics_, parts_.log);
}

Updater::~Updater() = default;

Result<std::unique_ptr<Updater>> Updater::create(UpdaterOptions options, UpdaterParts parts,
                                                 Metrics& metrics) {
  std::unique_ptr<Updater> self(new Updater(std::move(options), std::move(parts), metrics));
  auto consumer = kafka::Consumer::create(
      self->options_.consumer, [&metrics](kafka::ConsumerEvent event) { count(event, metrics); },
      self->parts_.log);
  if (!consumer.ok()) return consumer.status();
  self->consumer_ = std::move(consumer).value();
  auto prober = LogProber::create({.connection = self->options_.consumer.connection,
                                   .topic = self->options_.consumer.topic,
                                   .group_id = self->options_.consumer.group_id});
  if (!prober.ok()) return prober.status();
  self->prober_ = std::move(prober).value();
  self->partitions_->set_log_looks(self->prober_.get());
  if (Status status = self->start_filling(); !status.ok()) return status;
  return self;
}

Status Updater::run(const std::stop_token& stop) {
  if (Status status = consumer_->subscribe(*this); !status.ok()) return status;
  while (!stop.stop_requested() && !consumer_->fatal()) run_once();
  messages_.clear();
  const std::optional<std::string> fatal = consumer_->fatal();
  partitions_->set_log_looks(nullptr);
  prober_.reset();
  // In this order: the filler reads by the reader, and close() below still drains, which asks for
  // neither of them any more.
  filler_.reset();
  gap_reader_.reset();
  // Drains, marks and commits in on_revoking().
  consumer_->close(options_.leave_timeout);
  if (fatal) return Status::error(StatusCode::kUnavailable, *fatal, true);
  return {};
}

void Updater::run_once() {
  const Clock::time_point now = Clock::now();
  tick(now);
  hold_waiting();
  report_health(now);
  commit_if_due(now);
  if (now >= lag_due_) {
    lag_due_ = now + kLagInterval;
    tell_watch();
  }
  const bool held_up =
      writer_.full() || writer_.failing() || letters_.full() || partitions_->checking();
  fill_gaps(now, !held_up);
  if (held_up) {
    wait_or_pause(now);
  } else {
    resume_reading(now);
    read_batch();
  }
}

void Updater::tell_watch() {
  partitions_->list(offsets_);
  std::vector<PartitionDone> done;
  done.reserve(offsets_.size());
  for (const PartitionOffset& at : offsets_) {
    done.push_back({at.partition, partitions_->low_water(at.partition)});
  }
  parts_.watch->set_done(done, joined_);
}

void Updater::tick(Clock::time_point now) {
  done_.clear();
  writer_.tick(now, done_);
  for (Batch* batch : done_) settle_batch(*batch);
  settle_letters(now);
  if (troubles_ != consumer_->troubles()) {
    troubles_ = consumer_->troubles();
    partitions_->suspect_logs();
  }
  const std::uint64_t losses = metrics_->mark_losses.value();
  // Redis judges expiries by its clock.
  partitions_->tick(now, base::wall_now() + redis_ahead_);
  if (metrics_->mark_losses.value() != losses) writer_.forget_known();
}

void Updater::settle_batch(Batch& batch) {
  for (const Batch::Refused& refused : batch.refused()) send_refused(batch, refused);
  partitions_->complete_batch(batch);
  if (batch.gap_ticket == 0) {
    const Clock::time_point now = Clock::now();
    if (now - batch.submitted_at > kLiveLate) pace_.late(now);
  } else if (filler_) {
    filler_->written(batch);
  }
  observe_delay(batch);
  writer_.release(batch);
}

void Updater::send_refused(const Batch& batch, const Batch::Refused& refused) {
  const Batch::WritePosition& at = batch.positions[refused.write];
  const bool in_gap = batch.gap_ticket != 0;
  std::uint64_t generation = 0;
  if (in_gap) {
    if (!filler_ || !filler_->current(batch)) return;
    generation = partitions_->generation(at.partition);
    filler_->await_letter(batch, at.offset);
  } else {
    const auto range = std::find_if(
        batch.ranges.begin(), batch.ranges.end(),
        [&at](const Batch::BatchOffsets& held) { return held.partition == at.partition; });
    if (range == batch.ranges.end()) return;
    if (!partitions_->current(at.partition, range->generation)) return;
    generation = partitions_->open_letter(at.partition, at.offset);
  }
  DeadLetter letter;
  letter.key = batch.writes.key(refused.write);
  letter.payload = batch.writes.bytes(refused.write);
  letter.topic = options_.consumer.topic;
  letter.partition = at.partition;
  letter.offset = at.offset;
  letter.reason = events::Rejection::kRefused;
  letter.member = refused.why;
  letters_.put(std::move(letter), generation);
}

void Updater::settle_letters(Clock::time_point now) {
  arrived_.clear();
  letters_.tick(
      now,
      [this](std::int32_t partition, std::uint64_t generation) {
        return partitions_->current(partition, generation);
      },
      arrived_);
  for (const DeadLetterBox::LetterPosition& at : arrived_) {
    partitions_->close_letter(at.partition, at.generation, at.offset);
    if (filler_) filler_->letter_arrived(at.partition, at.offset);
  }
}

void Updater::observe_delay(const Batch& batch) {
  if (batch.first_message_ms < 0) return;
  // Conservative: counts every message as if it had waited as long as the batch's first.
  const auto delay = base::wall_now() - instant_from_ms(batch.first_message_ms);
  metrics_->event_delay.observe(std::max(delay, milliseconds{0}), batch.messages);
}

milliseconds Updater::first_wait() const noexcept {
  if (filler_ && filler_->looking()) return std::min(kFillPoll, options_.batch_wait);
  const bool idle = writer_.batches_in_flight() == 0 && !(filler_ && filler_->busy());
  return idle ? kIdlePoll : options_.batch_wait;
}

void Updater::read_batch() {
  messages_.limit(writer_.room());
  const bool one_assignment = consumer_->poll(messages_, first_wait(), options_.batch_wait);
  const Clock::time_point now = Clock::now();
  if (!messages_.messages().empty()) pace_.live(now);
  if (messages_.full()) {
    pace_.late(now);
  } else {
    // Nothing that was fetched is still waiting.
    silence_.set_drained(now);
  }
  if (one_assignment) {
    take_messages();
    for (const auto& [partition, end] : consumer_->ends_reached()) {
      // Not if a message before the end has not been taken.
      if (!undecoded_.contains(partition)) partitions_->reached_end(partition, end);
    }
  } else {
    partitions_->seek_all_again();
  }
  messages_.clear();
}

IntakeClocks Updater::clocks() const noexcept {
  const Instant now = base::wall_now();
  // An event is in the future, or too old, only if it is so by all clocks: one wrong clock neither
  // rejects nor drops an event that counts.
  const Instant latest = std::max({now, now + redis_ahead_, instant_from_ms(newest_append_ms_)});
  Instant earliest = std::min(now, now + redis_ahead_);
  if (newest_broker_ms_ > 0) earliest = std::min(earliest, instant_from_ms(newest_broker_ms_));
  return {latest, earliest};
}

void Updater::take_messages() {
  const auto messages = messages_.messages();
  if (messages.empty()) return;
  // The newest message of each stretch is at its end; the last one is enough to start with.
  newest_broker_ms_ = std::max(newest_broker_ms_, kafka::timestamp_ms(*messages.back()));
  newest_append_ms_ = std::max(newest_append_ms_, kafka::append_time_ms(*messages.back()));
  if (!clock_known_) compare_clocks();
  const IntakeClocks judged_by = clocks();
  if (parts_.trim_clock != nullptr) parts_.trim_clock->set(judged_by.earliest);
  Batch& batch = writer_.take();
  LeftOut left_out;
  std::uint64_t bytes = 0;
  for (const rd_kafka_message_t* message : messages) {
    if (!undecoded_.empty() && undecoded_.contains(message->partition)) continue;
    if (take_message(*message, judged_by, batch, left_out)) bytes += message->len;
  }
  batch.first_message_ms = kafka::timestamp_ms(*messages.front());
  rejections_.taken(batch.messages, Clock::now());
  metrics_->messages.add(batch.messages);
  metrics_->message_bytes.add(bytes);
  metrics_->events_too_old.add(left_out.too_old);
  metrics_->events_null_user.add(left_out.null_user);
  coalescer_.finish(batch.writes);
  partitions_->seal(batch.ranges);
  writer_.submit(batch);
}

bool Updater::take_message(const rd_kafka_message_t& message, const IntakeClocks& judged_by,
                           Batch& batch, LeftOut& left_out) {
  const Batch::WritePosition at{message.partition, message.offset};
  const MessageView view(message, options_.consumer.topic);
  if (!intake_.decode(view.message())) {
    let_wait(at.partition);
    return false;
  }
  if (!partitions_->take(at.partition, delivered_from(message))) return false;
  ++batch.messages;
  intake_.sort_events(
      judged_by, left_out, [&](const events::Event& event) { take_event(event, at, batch); },
      [&](const events::Rejected& why) {
        rejections_.rejected({at.partition, at.offset}, why, Clock::now());
        reject(message, why, partitions_->open_letter(at.partition, at.offset));
      });
  return true;
}

// Later messages wait with this one: hold_waiting() sets the partition back to it.
void Updater::let_wait(std::int32_t partition) {
  undecoded_[partition] = Clock::now() + kAskDecoderAgain;
}

void Updater::take_event(const events::Event& event, const Batch::WritePosition& at, Batch& batch) {
  if (coalescer_.add(event) == batch.positions.size()) batch.positions.push_back(at);
  if (event.kind == events::Event::Kind::kSeen) {
    ++batch.events;
  } else {
    batch.erasures.push_back({event.time, at.partition, at.offset});
  }
}

void Updater::reject(const rd_kafka_message_t& message, const events::Rejected& why,
                     std::uint64_t generation) {
  DeadLetter letter;
  if (message.len > 0)
    letter.payload.assign(static_cast<const char*>(message.payload), message.len);
  if (message.key_len > 0)
    letter.key.assign(static_cast<const char*>(message.key), message.key_len);
  letter.has_payload = message.payload != nullptr;
  letter.has_key = message.key != nullptr;
  letter.headers = kafka::headers_of(message);
  letter.topic = options_.consumer.topic;
  letter.partition = message.partition;
  letter.offset = message.offset;
  letter.timestamp_ms = kafka::timestamp_ms(message);
  letter.reason = why.reason;
  letter.member = why.member;
  letters_.put(std::move(letter), generation);
}

void Updater::commit_if_due(Clock::time_point now) {
  if (now < commit_due_) return;
  commit_due_ = now + options_.commit_interval;
  if (consumer_->take_commit_failure()) partitions_->forget_commits();
  partitions_->collect_commits(offsets_);
  consumer_->commit_async(offsets_);
}

void Updater::drain(Clock::time_point until) {
  // A letter that has failed already is not awaited: its message is read again.
  const auto unsettled = [this] {
    return writer_.batches_in_flight() + letters_.first_attempts() > 0;
  };
  while (unsettled() && Clock::now() < until) {
    tick(Clock::now());
    if (parts_.health != nullptr) parts_.health->beat(Clock::now());
    if (unsettled()) writer_.wait(std::min(until, Clock::now() + kTurn));
  }
  // Bounded: marks that cannot be written now only make the next reader start earlier.
  const Clock::time_point marks_until = std::min(until, Clock::now() + kLastMarks);
  while (!partitions_->marks_settled() && Clock::now() < marks_until) {
    partitions_->hurry();
    tick(Clock::now());
    std::this_thread::sleep_for(milliseconds{1});
  }
}

void Updater::on_assigning(std::vector<PartitionOffset>& partitions) {
  joined_ = true;
  writer_.forget_known();
  partitions_->assign(partitions);
  // resume_reading() places them.
  if (paused_) {
    for (PartitionOffset& at : partitions) at.offset = PartitionOffset::kNone;
  }
  tell_watch();
}

void Updater::on_revoking(std::span<const PartitionOffset> partitions, bool lost) {
  if (!lost && !partitions.empty()) {
    drain(Clock::now() + options_.drain_timeout);
    // All of them: with the eager protocol these are all there are.
    partitions_->forget_commits();
    partitions_->collect_commits(offsets_);
    const Status status = consumer_->commit_sync(offsets_);
    if (!status.ok() && parts_.log) parts_.log(LogLevel::kWarning, status.text());
  }
  for (const PartitionOffset& at : partitions) {
    undecoded_.erase(at.partition);
    held_.erase(at.partition);
  }
  partitions_->revoke(partitions);
  joined_ = partitions_->size() > 0;
  tell_watch();
}

void Updater::ask(std::span<const std::int32_t> partitions) {
  parts_.watch->ask(partitions);
}

std::optional<Result<LogBounds>> Updater::answer(std::int32_t partition) {
  return parts_.watch->answer(partition);
}

}  // namespace fcap::updater
