#include "updater/pipeline/updater.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTurn{20};         // how often things are looked at when nothing happens
constexpr milliseconds kIdlePoll{50};     // the wait for a first message when nothing is in flight
constexpr milliseconds kKafkaAsks{5000};  // questions to Kafka while partitions are taken over
constexpr milliseconds kLagInterval{1000};
constexpr milliseconds kLastMarks{1000};  // how long the last marks may take at a revoke
/// Broker timestamps may be the producers'; an event's own time may lie past its message's.
constexpr std::chrono::hours kTimestampSlack{1};

Instant wall_now() noexcept {
  return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
}

/// Below 0: it has none.
std::int64_t broker_time_ms(const rd_kafka_message_t& message) noexcept {
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t ms = rd_kafka_message_timestamp(&message, &type);
  return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : ms;
}

void copy_headers(const rd_kafka_message_t& message, DeadLetter& letter) {
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t bytes = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &bytes) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    letter.headers.emplace_back(name, std::string(static_cast<const char*>(value), bytes));
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
      partitions_(*parts_.store, parts_.epoch, *this, mark_options(options_), metrics, parts_.log),
      writer_(*parts_.store, parts_.hook, options_.write, metrics, parts_.log, parts_.epoch),
      letters_(parts_.dead_letters, options_.dead_letters, metrics, parts_.log),
      messages_(options_.batch_messages_max) {
  writer_.set_passed([this](const Batch& batch) {
    return std::none_of(batch.ranges.begin(), batch.ranges.end(), [this](const auto& range) {
      return partitions_.current(range.partition, range.generation);
    });
  });
}

Updater::~Updater() = default;

Result<std::unique_ptr<Updater>> Updater::create(UpdaterOptions options, UpdaterParts parts,
                                                 Metrics& metrics) {
  std::unique_ptr<Updater> self(new Updater(std::move(options), std::move(parts), metrics));
  auto consumer = KafkaConsumer::create(self->options_.consumer, metrics, self->parts_.log);
  if (!consumer.ok()) return consumer.status();
  self->consumer_ = std::move(consumer).value();
  return self;
}

std::optional<Instant> Updater::trim_now() const noexcept {
  const std::int64_t ms = trim_now_ms_.load(std::memory_order_relaxed);
  return ms == 0 ? std::nullopt : std::optional(instant_from_ms(ms));
}

Status Updater::run(const std::stop_token& stop) {
  if (Status status = consumer_->subscribe(*this); !status.ok()) return status;
  while (!stop.stop_requested() && !consumer_->fatal()) turn();
  messages_.clear();
  const std::optional<std::string> fatal = consumer_->fatal();
  consumer_->close();  // drains, marks and commits in on_revoking()
  if (fatal) return Status::error(StatusCode::kUnavailable, *fatal, true);
  return {};
}

void Updater::turn() {
  const Clock::time_point now = Clock::now();
  settle(now);
  hold_waiting();
  report_health(now);
  commit_if_due(now);
  if (now >= lag_due_) {
    lag_due_ = now + kLagInterval;
    partitions_.report_lag();
  }
  if (writer_.full() || writer_.failing() || letters_.full() || partitions_.checking()) {
    hold_up(now);
  } else if (let_go()) {
    read_batch();
  } else {
    std::this_thread::sleep_for(kTurn);
  }
}

void Updater::settle(Clock::time_point now) {
  done_.clear();
  writer_.pump(now, done_);
  for (Batch* batch : done_) settle_batch(*batch);
  settle_letters(now);
  partitions_.tick(now, wall_now());
}

void Updater::settle_batch(Batch& batch) {
  for (const Batch::Refused& refused : batch.refused()) {
    const std::int32_t partition = batch.positions[refused.write].partition;
    const auto range =
        std::find_if(batch.ranges.begin(), batch.ranges.end(),
                     [partition](const Batch::Range& held) { return held.partition == partition; });
    if (range != batch.ranges.end()) send_refused(batch, refused, range->generation);
  }
  for (const Batch::Range& range : batch.ranges) partitions_.complete(range);
  observe_delay(batch);
  writer_.release(batch);
}

void Updater::send_refused(const Batch& batch, const Batch::Refused& refused,
                           std::uint64_t generation) {
  const Batch::Position& at = batch.positions[refused.write];
  if (!partitions_.current(at.partition, generation)) return;
  DeadLetter letter;
  letter.key = batch.writes.key(refused.write);
  letter.payload = batch.writes.bytes(refused.write);
  letter.topic = consumer_->topic();
  letter.partition = at.partition;
  letter.offset = at.offset;
  letter.reason = events::Rejection::kRefused;
  letter.member = refused.why;
  letters_.put(std::move(letter), partitions_.open_letter(at.partition, at.offset));
}

void Updater::settle_letters(Clock::time_point now) {
  arrived_.clear();
  letters_.pump(
      now,
      [this](std::int32_t partition, std::uint64_t generation) {
        return partitions_.current(partition, generation);
      },
      arrived_);
  for (const DeadLetterBox::Place& at : arrived_) {
    partitions_.close_letter(at.partition, at.generation, at.offset);
  }
}

void Updater::hold_waiting() {
  const std::set<std::int32_t>& waiting = letters_.waiting_partitions();
  if (waiting == held_) return;
  offsets_.clear();
  for (const std::int32_t partition : waiting) {
    if (held_.contains(partition)) continue;
    partitions_.hold(partition, true);
    offsets_.push_back({partition, PartitionOffset::kNone});
  }
  consumer_->pause(offsets_);
  offsets_.clear();
  for (const std::int32_t partition : held_) {
    if (waiting.contains(partition)) continue;
    partitions_.hold(partition, false);
    if (!paused_) offsets_.push_back({partition, PartitionOffset::kNone});
  }
  consumer_->resume(offsets_);
  held_ = waiting;
  metrics_->waiting_partitions.set(static_cast<std::int64_t>(held_.size()));
}

void Updater::observe_delay(const Batch& batch) {
  if (batch.first_message_ms < 0) return;
  // As if every message had waited as long as the batch's first.
  const auto delay = wall_now() - instant_from_ms(batch.first_message_ms);
  metrics_->event_delay.observe(std::max(delay, milliseconds{0}), batch.messages);
}

void Updater::report_health(Clock::time_point now) {
  if (parts_.health == nullptr) return;
  parts_.health->beat(now);
  parts_.health->set_assigned(joined_);
  using Trouble = Health::Trouble;
  const auto tell = [this](Trouble kind, bool failing, std::string_view what) {
    parts_.health->set_trouble(kind, failing ? what : std::string_view{});
  };
  tell(Trouble::kMarks, partitions_.failing(), partitions_.trouble());
  tell(Trouble::kWrites, writer_.failing(), writer_.trouble());
  tell(Trouble::kDeadLetters, letters_.failing(), letters_.trouble());
  report_partitions();
}

void Updater::report_partitions() {
  const auto& errors = consumer_->partition_errors();
  std::string unreadable;
  for (const auto& [partition, what] : errors) {
    if (!unreadable.empty()) unreadable += '\n';
    unreadable += partition == KafkaConsumer::kTopic
                      ? fmt::format("topic {}: {}", consumer_->topic(), what)
                      : fmt::format("partition {}: {}", partition, what);
  }
  const bool all = errors.contains(KafkaConsumer::kTopic);
  metrics_->unreadable_partitions.set(
      static_cast<std::int64_t>(all ? partitions_.size() : errors.size()));
  parts_.health->set_trouble(Health::Trouble::kPartitions, unreadable);
}

void Updater::hold_up(Clock::time_point now) {
  if (held_since_ == Clock::time_point{}) held_since_ = now;
  if (!paused_ && now - held_since_ < options_.pause_after) {
    writer_.wait(now + kTurn);
    return;
  }
  if (!paused_) {
    paused_ = true;
    metrics_->pauses.add();
    partitions_.list(offsets_);
    metrics_->paused_partitions.set(static_cast<std::int64_t>(offsets_.size()));
    consumer_->pause(offsets_);
  }
  // Only to stay in the group: paused partitions give nothing, and what may slip through is read
  // again, because let_go() seeks.
  (void)consumer_->poll(messages_, kTurn, milliseconds{0});
  messages_.clear();
}

bool Updater::let_go() {
  held_since_ = {};
  if (paused_) {
    partitions_.list(offsets_);
    std::erase_if(offsets_, [this](const auto& at) { return partitions_.held(at.partition); });
    consumer_->resume(offsets_);
    partitions_.place_again();
    paused_ = false;
    metrics_->paused_partitions.set(0);
  }
  return place_partitions();
}

bool Updater::place_partitions() {
  partitions_.to_place(offsets_);
  if (offsets_.empty()) return true;
  failed_.clear();
  consumer_->seek(offsets_, failed_);
  for (const PartitionOffset& at : offsets_) {
    if (std::find(failed_.begin(), failed_.end(), at.partition) == failed_.end()) {
      partitions_.placed(at.partition);
    }
  }
  return failed_.empty();
}

void Updater::read_batch() {
  const bool idle = writer_.batches_in_flight() == 0;
  messages_.limit(writer_.room());
  const bool one_assignment =
      consumer_->poll(messages_, idle ? kIdlePoll : options_.batch_wait, options_.batch_wait);
  if (one_assignment) {
    take_messages();
  } else {
    partitions_.place_again();
  }
  messages_.clear();
}

IntakeClocks Updater::clocks() const noexcept {
  const Instant now = wall_now();
  if (newest_broker_ms_ <= 0) return {now, now};
  return {now, std::min(now, instant_from_ms(newest_broker_ms_))};
}

void Updater::take_messages() {
  const auto messages = messages_.messages();
  if (messages.empty()) return;
  // The newest message of each stretch is at its end; a look at the last one is enough to start.
  newest_broker_ms_ = std::max(newest_broker_ms_, broker_time_ms(*messages.back()));
  const IntakeClocks judged_by = clocks();
  trim_now_ms_.store(to_ms(judged_by.trim_now), std::memory_order_relaxed);
  Batch& batch = writer_.take();
  std::size_t taken = 0;
  std::uint64_t bytes = 0;
  std::uint64_t too_old = 0;
  std::uint64_t null_user = 0;
  for (const rd_kafka_message_t* message : messages) {
    if (!partitions_.take(message->partition, message->offset)) continue;
    ++taken;
    bytes += message->len;
    const std::string_view payload(static_cast<const char*>(message->payload), message->len);
    switch (intake_.judge(payload, judged_by)) {
      case Intake::Fate::kWrite:
        if (coalescer_.add(intake_.event()) == batch.positions.size()) {
          batch.positions.push_back({message->partition, message->offset});
        }
        count_accepted(batch, *message);
        break;
      case Intake::Fate::kTooOld:
        ++too_old;
        break;
      case Intake::Fate::kNullUser:
        ++null_user;
        break;
      case Intake::Fate::kReject:
        reject(*message);
        break;
    }
  }
  batch.messages = taken;
  batch.first_message_ms = broker_time_ms(*messages.front());
  metrics_->messages.add(taken);
  metrics_->message_bytes.add(bytes);
  metrics_->events_too_old.add(too_old);
  metrics_->events_null_user.add(null_user);
  coalescer_.finish(batch.writes);
  partitions_.seal(batch.ranges);
  writer_.submit(batch);
}

void Updater::count_accepted(Batch& batch, const rd_kafka_message_t& message) {
  const events::Event& event = intake_.event();
  if (event.kind == events::Event::Kind::kSeen) {
    ++batch.events;
  } else {
    batch.erasures.push_back(
        {std::string(event.user_id), event.time, message.partition, message.offset});
  }
}

void Updater::reject(const rd_kafka_message_t& message) {
  const events::Rejected& why = intake_.rejected();
  DeadLetter letter;
  if (message.len > 0)
    letter.payload.assign(static_cast<const char*>(message.payload), message.len);
  if (message.key_len > 0)
    letter.key.assign(static_cast<const char*>(message.key), message.key_len);
  letter.has_payload = message.payload != nullptr;
  letter.has_key = message.key != nullptr;
  copy_headers(message, letter);
  letter.topic = consumer_->topic();
  letter.partition = message.partition;
  letter.offset = message.offset;
  letter.timestamp_ms = broker_time_ms(message);
  letter.reason = why.reason;
  letter.member = why.member;
  letters_.put(std::move(letter), partitions_.open_letter(message.partition, message.offset));
}

void Updater::commit_if_due(Clock::time_point now) {
  if (now < commit_due_) return;
  commit_due_ = now + options_.commit_interval;
  if (consumer_->take_commit_failure()) partitions_.forget_commits();
  partitions_.collect_commits(offsets_);
  consumer_->commit_async(offsets_);
}

void Updater::drain(Clock::time_point until) {
  // A letter that has failed already is not waited for: its message is read again.
  const auto unsettled = [this] {
    return writer_.batches_in_flight() + letters_.first_attempts() > 0;
  };
  while (unsettled() && Clock::now() < until) {
    settle(Clock::now());
    if (unsettled()) writer_.wait(std::min(until, Clock::now() + kTurn));
  }
  // Bounded: marks that cannot be written now only make the next reader start earlier.
  const Clock::time_point marks_until = std::min(until, Clock::now() + kLastMarks);
  while (!partitions_.marks_settled() && Clock::now() < marks_until) {
    partitions_.hurry();
    settle(Clock::now());
    std::this_thread::sleep_for(milliseconds{1});
  }
}

void Updater::on_assigning(std::vector<PartitionOffset>& partitions) {
  joined_ = true;
  partitions_.assign(partitions);
}

void Updater::on_assigned(std::span<const PartitionOffset> partitions) {
  if (paused_) {
    consumer_->pause(partitions);
    partitions_.place_again();
  }
}

void Updater::on_revoking(std::span<const PartitionOffset> partitions, bool lost) {
  if (!lost && !partitions.empty()) {
    drain(Clock::now() + options_.drain_timeout);
    // All of them: with the eager protocol these are all there are.
    partitions_.forget_commits();
    partitions_.collect_commits(offsets_);
    const Status status = consumer_->commit_sync(offsets_);
    if (!status.ok() && parts_.log) parts_.log(LogLevel::kWarning, status.text());
  }
  offsets_.clear();
  for (const PartitionOffset& at : partitions) {
    if (held_.erase(at.partition) > 0) offsets_.push_back(at);
  }
  if (!lost) consumer_->resume(offsets_);
  partitions_.revoke(partitions);
  joined_ = partitions_.size() > 0;
}

Status Updater::committed(std::vector<PartitionOffset>& partitions) {
  return consumer_->committed(partitions, kKafkaAsks);
}

Result<std::int64_t> Updater::retention_start(std::int32_t partition) {
  const auto ends = consumer_->watermarks(partition, kKafkaAsks);
  if (!ends.ok()) return ends.status();
  std::vector<PartitionOffset> at{{partition, PartitionOffset::kNone}};
  const Instant since = wall_now() - options_.intake.retention - kTimestampSlack;
  const Status status = consumer_->offsets_at(since, at, kKafkaAsks);
  // None: every message is older, or the clock is wrong; the earliest is right in both cases,
  // because what is too old is skipped.
  if (!status.ok() || at[0].offset < 0) return ends.value().low;
  return std::max(at[0].offset, ends.value().low);
}

std::optional<std::int64_t> Updater::known_end(std::int32_t partition) const {
  return consumer_->known_end(partition);
}

}  // namespace fcap::updater
