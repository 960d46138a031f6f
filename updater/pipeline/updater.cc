#include "updater/pipeline/updater.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "updater/pipeline/message_view.h"

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTurn{20};      // how often the loop turns when nothing happens
constexpr milliseconds kIdlePoll{50};  // the wait for a first message when nothing is in flight
constexpr milliseconds kFillPoll{1};   // the same while the records of a gap's users are being read
constexpr milliseconds kLiveLate{20};  // a live batch that took longer to be written is late
constexpr milliseconds kLagInterval{1000};
constexpr milliseconds kLookInterval{500};  // at Kafka's state, and at the clocks
constexpr milliseconds kLastMarks{1000};    // how long the last marks may take at a revoke

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

}  // namespace

Updater::Updater(UpdaterOptions options, UpdaterParts parts,
                 std::unique_ptr<kafka::Consumer> consumer, std::unique_ptr<LogProber> prober,
                 Metrics& metrics)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      metrics_(&metrics),
      consumer_(std::move(consumer)),
      prober_(std::move(prober)),
      clocks_(parts_.redis_clock, options_.intake.future_allowed, parts_.log),
      intake_(*parts_.decoder, options_.intake),
      coalescer_({options_.key_prefix, options_.intake.retention}),
      partitions_(make_partitions()),
      writer_(*parts_.store, parts_.hook, options_.write, metrics, parts_.log, parts_.epoch),
      gap_times_(options_.intake.future_allowed),
      letters_(parts_.dead_letters, options_.dead_letters, metrics, parts_.log),
      rejections_(options_.rejections, parts_.log),
      reading_(*consumer_, *partitions_, options_.pause_after, metrics),
      report_({.health = parts_.health,
               .consumer = consumer_.get(),
               .watch = parts_.watch,
               .partitions = partitions_.get(),
               .reading = &reading_,
               .writer = &writer_,
               .letters = &letters_,
               .rejections = &rejections_,
               .clocks = &clocks_},
              options_.consumer.topic, metrics, parts_.log),
      messages_(options_.batch_messages_max) {
  partitions_->set_log_looks(prober_.get());
  writer_.set_passed([this](const Batch& batch) {
    if (batch.gap_ticket != 0) return !filler_ || !filler_->current(batch);
    return std::none_of(batch.ranges.begin(), batch.ranges.end(), [this](const auto& range) {
      return partitions_->current(range.partition, range.generation);
    });
  });
  if (partitions_->by_slot()) {
    writer_.set_away([this](std::string_view key) {
      return partitions_->recovery().is_away(redis::slot_of(key));
    });
  }
}

std::unique_ptr<PartitionSet> Updater::make_partitions() {
  MarkOptions marks = options_.mark;
  marks.key_prefix = options_.key_prefix;
  marks.group_id = options_.consumer.group_id;
  marks.topic = options_.consumer.topic;
  marks.retention = options_.intake.retention;
  auto shards = parts_.cluster ? std::make_shared<ClientShards>(parts_.cluster) : nullptr;
  return std::make_unique<PartitionSet>(*parts_.store, parts_.epoch, *parts_.watch, marks,
                                        *metrics_, parts_.log, std::move(shards));
}

Updater::~Updater() = default;

Result<std::unique_ptr<Updater>> Updater::create(UpdaterOptions options, UpdaterParts parts,
                                                 Metrics& metrics) {
  auto consumer = kafka::Consumer::create(
      options.consumer, [&metrics](kafka::ConsumerEvent event) { count(event, metrics); },
      parts.log);
  if (!consumer.ok()) return consumer.status();
  auto prober = LogProber::create({.connection = options.consumer.connection,
                                   .topic = options.consumer.topic,
                                   .group_id = options.consumer.group_id});
  if (!prober.ok()) return prober.status();
  std::unique_ptr<Updater> self(new Updater(std::move(options), std::move(parts),
                                            std::move(consumer).value(), std::move(prober).value(),
                                            metrics));
  if (Status status = self->start_filling(); !status.ok()) return status;
  return self;
}

Status Updater::start_filling() {
  // Without it no gap is ever opened, and gaps that others have opened are read in line. In a
  // cluster nothing is read in line.
  if (!options_.mark.gap_min && !partitions_->by_slot()) return {};
  auto reader = GapReader::create({.connection = options_.consumer.connection,
                                   .topic = options_.consumer.topic,
                                   .group_id = options_.consumer.group_id});
  if (!reader.ok()) return reader.status();
  gap_reader_ = std::move(reader).value();
  GapFillerParts parts;
  parts.partitions = partitions_.get();
  parts.writer = &writer_;
  parts.store = parts_.store;
  parts.log = gap_reader_.get();
  parts.intake = &intake_;
  parts.clocks = [this] { return clocks_.now(); };
  parts.reject = [this](std::int32_t partition, const GapLog::GapMessage& message,
                        const events::Rejected& why) {
    reject(*message.whole, why, partitions_->generation(partition));
  };
  parts.report = parts_.log;
  parts.filled = [this](const GapPiece& piece, std::optional<Instant> newest) {
    gap_times_.filled(piece.partition, piece.from, newest);
  };
  filler_ = std::make_unique<GapFiller>(
      GapFillerOptions{.records = {options_.key_prefix, options_.intake.retention},
                       .topic = options_.consumer.topic,
                       .read_deadline = options_.write.deadline},
      std::move(parts), *metrics_);
  return {};
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
  reading_.hold(letters_.waiting_partitions(), now);
  report_.beat(now, joined_);
  look_if_due(now);
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
    reading_.resume(now);
    read_batch();
  }
}

void Updater::look_if_due(Clock::time_point now) {
  if (now < look_due_) return;
  look_due_ = now + kLookInterval;
  reading_.look_for_silence(parts_.watch->ends(now), now);
  report_.look(now, joined_);
  if (!clocks_.compare()) return;
  if (parts_.log) {
    parts_.log(LogLevel::kWarning,
               "while the clock of Redis was ahead, records may have expired too early: reading "
               "again from the start of retention");
  }
  metrics_->mark_losses.add();
  writer_.forget_known();
  partitions_->recovery().doubt_all();
}

void Updater::wait_or_pause(Clock::time_point now) {
  if (!reading_.pause_if_due(now)) return writer_.wait(now + kTurn);
  // Only to stay in the group: paused partitions deliver nothing, and messages that slip through
  // are read again, because resume() seeks.
  (void)consumer_->poll(messages_, kTurn, milliseconds{0});
  messages_.clear();
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
  partitions_->tick(now, clocks_.redis_now());
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
  const PartitionOffset& at = batch.positions[refused.write];
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
  const std::uint64_t resets = consumer_->offset_resets();
  if (std::exchange(offset_resets_, resets) != resets) partitions_->offsets_were_reset(now);
  if (!messages_.messages().empty()) pace_.live(now);
  if (messages_.full()) {
    pace_.late(now);
  } else {
    // Nothing that was fetched is still waiting.
    reading_.set_drained(now);
  }
  if (one_assignment) {
    take_messages();
    for (const auto& [partition, end] : consumer_->ends_reached()) {
      // Not if a message before the end has not been taken.
      if (!reading_.awaits_decoder(partition)) partitions_->reached_end(partition, end);
    }
  } else {
    partitions_->seek_all_again();
  }
  if (!messages_.full()) partitions_->caught_up(now);
  messages_.clear();
}

void Updater::take_messages() {
  const auto messages = messages_.messages();
  if (messages.empty()) return;
  // The newest message of each stretch is at its end; the last one is enough to start with.
  clocks_.note_message(kafka::timestamp_ms(*messages.back()),
                       kafka::has_append_time(*messages.back()));
  const IntakeClocks judged_by = clocks_.now();
  if (parts_.trim_clock != nullptr) parts_.trim_clock->set(judged_by.earliest);
  Batch& batch = writer_.take();
  LeftOut left_out;
  std::uint64_t bytes = 0;
  for (const rd_kafka_message_t* message : messages) {
    if (reading_.awaits_decoder(message->partition)) continue;
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
  const PartitionOffset at{message.partition, message.offset};
  const MessageView view(message, options_.consumer.topic);
  if (!intake_.decode(view.message())) {
    reading_.await_decoder(at.partition, Clock::now());
    return false;
  }
  if (!partitions_->take(at.partition, delivered_from(message))) return false;
  ++batch.messages;
  intake_.sort_events(
      judged_by, left_out, [&](const events::Event& event) { batch.take(event, at, coalescer_); },
      [&](const events::Rejected& why) {
        rejections_.rejected(at, why, Clock::now());
        reject(message, why, partitions_->open_letter(at.partition, at.offset));
      });
  return true;
}

void Updater::reject(const rd_kafka_message_t& message, const events::Rejected& why,
                     std::uint64_t generation) {
  DeadLetter letter;
  letter.payload = kafka::payload_of(message);
  letter.key = kafka::key_of(message).value_or("");
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
    parts_.health->beat(Clock::now());
    if (unsettled()) writer_.wait(std::min(until, Clock::now() + kTurn));
  }
  // Bounded: marks that cannot be written now only make the next reader start earlier.
  const Clock::time_point marks_until = std::min(until, Clock::now() + kLastMarks);
  while (!partitions_->recovery().settled() && Clock::now() < marks_until) {
    partitions_->hurry();
    tick(Clock::now());
    std::this_thread::sleep_for(milliseconds{1});
  }
}

void Updater::on_assigning(std::vector<PartitionOffset>& partitions) {
  joined_ = true;
  writer_.forget_known();
  partitions_->assign(partitions);
  // TopicReading::resume() places them.
  if (reading_.paused()) {
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
  reading_.revoked(partitions);
  partitions_->revoke(partitions);
  joined_ = partitions_->size() > 0;
  tell_watch();
}

void Updater::fill_gaps(Clock::time_point now, bool read) {
  if (!filler_) return show_gaps(*partitions_, *metrics_);
  const Clock::time_point began = Clock::now();
  filler_->tick(now, pace_.due(now) && read);
  pace_.worked(Clock::now() - began);
}

OpenGaps Updater::open_gaps() {
  const Instant latest = clocks_.after_all_events();
  gap_times_.expired(partitions_->take_expired(), latest);
  std::vector<GapEnd> ends;
  partitions_->recovery().list_gap_ends(ends);
  gap_times_.look(ends, latest);
  return gap_times_.open_gaps();
}

MarkNews Updater::mark_news() {
  MarkNews news;
  partitions_->recovery().tell_marks(news);
  news.partitions = parts_.watch->topic(Clock::now()).partitions;
  news.latest = clocks_.after_all_events();
  news.connections = parts_.epoch();
  return news;
}

}  // namespace fcap::updater
