#include "updater/replay/replay.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "updater/pipeline/message_view.h"

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kKafkaAsks{15'000};
constexpr milliseconds kLeaving{10'000};
constexpr milliseconds kFirstWait{100};
constexpr milliseconds kAskDecoderAgain{200};
constexpr milliseconds kMoreWait{20};
constexpr milliseconds kMemoryInterval{1000};
constexpr milliseconds kLossInterval{1000};
constexpr milliseconds kSilenceInterval{1000};
constexpr milliseconds kUnattendedMax{3000};   // while nothing is polled, nothing can come
constexpr milliseconds kSilenceWords{30'000};  // what Kafka's client said before explains nothing
constexpr int kBeginAgainMax = 5;
constexpr milliseconds kSaveInterval{5000};
// With a rate, so much of it is read at a time, and so much of what was missed is made up for.
constexpr double kTurnsSeconds = 0.05;
constexpr milliseconds kMadeUpFor{100};

ReplayOptions checked(ReplayOptions options) {
  // Messages that expire meanwhile are skipped; "latest" would skip all that remain.
  options.consumer.offset_reset = "earliest";
  options.write.retention = options.intake.retention;
  return options;
}

}  // namespace

Replay::Replay(ReplayOptions options, ReplayParts parts)
    : options_(checked(std::move(options))),
      parts_(std::move(parts)),
      intake_(*parts_.decoder, options_.intake),
      coalescer_({options_.key_prefix, options_.intake.retention}),
      writer_(*parts_.store, options_.write, parts_.log),
      messages_(options_.batch_messages_max) {}

Replay::~Replay() = default;

Result<std::unique_ptr<Replay>> Replay::create(ReplayOptions options, ReplayParts parts) {
  std::unique_ptr<Replay> self(new Replay(std::move(options), std::move(parts)));
  auto consumer = kafka::Consumer::create(self->options_.consumer, {}, self->parts_.log);
  if (!consumer.ok()) return consumer.status();
  self->consumer_ = std::move(consumer).value();
  return self;
}

Status Replay::find_partitions() {
  const auto count = consumer_->partition_count(kKafkaAsks);
  if (!count.ok()) return count.status();
  reading_ = options_.partitions;
  if (reading_.empty()) {
    for (std::int32_t partition = 0; partition < count.value(); ++partition) {
      reading_.push_back(partition);
    }
  }
  std::sort(reading_.begin(), reading_.end());
  reading_.erase(std::unique(reading_.begin(), reading_.end()), reading_.end());
  for (const std::int32_t partition : reading_) {
    if (partition >= 0 && partition < count.value()) continue;
    return Status::error(StatusCode::kInvalidArgument,
                         fmt::format("partition {}: topic {} has {} (0 to {})", partition, topic(),
                                     count.value(), count.value() - 1));
  }
  for (const auto* offsets : {&options_.from_offsets, &options_.to_offsets}) {
    for (const auto& [partition, offset] : *offsets) {
      if (std::binary_search(reading_.begin(), reading_.end(), partition)) continue;
      const bool exists = partition >= 0 && partition < count.value();
      return Status::error(
          StatusCode::kInvalidArgument,
          exists ? fmt::format("partition {}: an offset is given, but --partitions leaves it out",
                               partition)
                 : fmt::format("partition {}: an offset is given, but topic {} has {} (0 to {})",
                               partition, topic(), count.value(), count.value() - 1));
    }
  }
  return {};
}

Result<Replay::ReplaySpan> Replay::span_of(std::int32_t partition) {
  const auto ends = consumer_->watermarks(partition, kKafkaAsks);
  if (!ends.ok()) return ends.status();
  ReplaySpan span{ends.value().low, ends.value().high};
  std::vector<kafka::PartitionOffset> at{{partition}};
  if (options_.from_time) {
    if (Status status = consumer_->offsets_at(*options_.from_time, at, kKafkaAsks); !status.ok()) {
      return status;
    }
    span.next = at[0].offset >= 0 ? at[0].offset : span.end;
  }
  if (options_.to_time) {
    if (Status status = consumer_->offsets_at(*options_.to_time, at, kKafkaAsks); !status.ok()) {
      return status;
    }
    if (at[0].offset >= 0) span.end = std::min(span.end, at[0].offset);
  }
  if (options_.from_offset) span.next = std::max(span.next, *options_.from_offset);
  if (options_.to_offset) span.end = std::min(span.end, *options_.to_offset);
  if (const auto from = options_.from_offsets.find(partition);
      from != options_.from_offsets.end()) {
    if (from->second > ends.value().high) {
      return Status::error(StatusCode::kInvalidArgument,
                           fmt::format("--from-offset: partition {} ends at {}, before {}",
                                       partition, ends.value().high, from->second));
    }
    span.next = std::max(span.next, from->second);
  }
  if (const auto to = options_.to_offsets.find(partition); to != options_.to_offsets.end()) {
    span.end = std::min(span.end, to->second);
  }
  return span;
}

Status Replay::find_spans() {
  total_ = 0;
  std::vector<kafka::PartitionOffset> committed;
  for (const std::int32_t partition : reading_) {
    committed.push_back({partition});
  }
  if (options_.resume) {
    if (Status status = consumer_->committed(committed, kKafkaAsks); !status.ok()) return status;
  }
  for (const kafka::PartitionOffset& at : committed) {
    auto span = span_of(at.partition);
    if (!span.ok()) return span.status();
    whole_spans_[at.partition] = span.value();
    if (at.offset >= 0) span.value().next = std::max(span.value().next, at.offset);
    total_ +=
        static_cast<std::uint64_t>(std::max<std::int64_t>(span.value().end - span.value().next, 0));
    spans_[at.partition] = span.value();
  }
  return {};
}

Result<ReplaySummary> Replay::run(const std::stop_token& stop) {
  if (options_.from_time && options_.to_time && *options_.from_time >= *options_.to_time) {
    return Status::error(StatusCode::kInvalidArgument, "the range ends before it begins");
  }
  if (Status status = find_partitions(); !status.ok()) return status;
  if (Status status = find_spans(); !status.ok()) return status;
  began_ = Clock::now();
  if (Status status = start_reading(); !status.ok()) return status;
  while (read_range(stop) && lost_something(Clock::now(), true)) {
    if (!begin_again()) break;
  }
  save_position(Clock::now(), true);
  summary_.elapsed = std::chrono::duration_cast<milliseconds>(Clock::now() - began_);
  for (const auto& [partition, span] : spans_) summary_.next_offsets[partition] = span.next;
  messages_.clear();
  consumer_->close(kLeaving);
  return summary_;
}

Status Replay::start_reading() {
  reading_.clear();
  std::vector<kafka::PartitionOffset> from;
  for (const auto& [partition, span] : spans_) {
    if (span.done()) continue;
    reading_.push_back(partition);
    from.push_back({partition, span.next});
  }
  if (from.empty()) return {};
  // resume() comes first, because it goes on where the partition was paused, and assign() then says
  // where to read.
  consumer_->resume(from);
  return consumer_->assign(from);
}

void Replay::look_for_silence(Clock::time_point now) {
  if (now < silence_due_) return;
  // What has been fetched may be waiting behind other partitions' messages, or for the next poll.
  if (flowing_ || now > silence_due_ + kUnattendedMax) silence_ = {};
  silence_due_ = now + kSilenceInterval;
  std::vector<SilenceBook::Reading> reading;
  for (const std::int32_t partition : reading_) {
    const ReplaySpan& span = spans_.at(partition);
    reading.push_back({partition, span.next, span.end});
  }
  silence_.set_reading(reading, now);
  if (!silence_.take_remedy(now)) return;
  for (const std::int32_t partition : silence_.silent(now)) {
    const ReplaySpan& span = spans_.at(partition);
    if (!parts_.log) continue;
    const std::string words = consumer_->words_since(now - kSilenceWords);
    parts_.log(LogLevel::kWarning,
               fmt::format("partition {}: Kafka delivers nothing from offset {} on, although the "
                           "range ends at {}{}{}; asking for it again",
                           partition, span.next, span.end, words.empty() ? "" : ": ", words));
  }
  if (const Status status = start_reading(); !status.ok() && parts_.log) {
    parts_.log(LogLevel::kWarning, status.text());
  }
}

bool Replay::read_range(const std::stop_token& stop) {
  while (!all_done()) {
    if (stop.stop_requested() || !step(stop)) {
      summary_.end = ReplaySummary::ReplayEnd::kStopped;
      return false;
    }
    const auto now = Clock::now();
    if (collected_to_.empty()) look_for_silence(now);
    if (collected_to_.empty() && too_much_memory(now)) {
      summary_.end = ReplaySummary::ReplayEnd::kMemory;
      return false;
    }
    if (lost_something(now, false) && !begin_again()) return false;
    save_position(now, false);
    report_progress(now);
    throttle(stop);
  }
  return true;
}

bool Replay::lost_something(Clock::time_point now, bool at_once) {
  if (!parts_.lost || (!at_once && now < loss_due_)) return false;
  loss_due_ = now + kLossInterval;
  return parts_.lost();
}

bool Replay::begin_again() {
  const bool again = ++begun_again_ <= kBeginAgainMax;
  if (parts_.log) {
    parts_.log(LogLevel::kWarning,
               fmt::format("Redis was emptied or reconnected and may have lost some of what was "
                           "written; {}",
                           again ? "beginning again" : "giving up"));
  }
  if (again) {
    spans_ = whole_spans_;
    collected_to_.clear();
    coalescer_.clear();
    if (start_reading().ok()) return true;
  }
  summary_.end = ReplaySummary::ReplayEnd::kLost;
  return false;
}

bool Replay::step(const std::stop_token& stop) {
  if (options_.messages_per_second > 0) {
    // So little at a time that Redis, which is in use, gets no bursts.
    const double per_turn = options_.messages_per_second * kTurnsSeconds;
    messages_.limit(std::max<std::size_t>(static_cast<std::size_t>(per_turn), 1));
  }
  (void)consumer_->poll(messages_, kFirstWait, kMoreWait);
  const bool collected = collect(stop);
  flowing_ = messages_.full();
  if (!flowing_) silence_.set_drained(Clock::now());
  messages_.clear();
  if (!collected) return false;
  const bool enough = coalescer_.events() >= options_.collected_events_max;
  if (!enough && flowing_ && options_.messages_per_second <= 0) return true;
  if (!write_collected(stop)) return false;
  finish_partitions();
  return true;
}

bool Replay::collect(const std::stop_token& stop) {
  const auto messages = messages_.messages();
  if (!messages.empty()) {
    newest_broker_ms_ = std::max(newest_broker_ms_, kafka::timestamp_ms(*messages.back()));
  }
  // What is too old is judged by the local clock alone: a replay meets messages from long ago
  // first, so the newest timestamp that it knows of says little. What is in Redis is trimmed only
  // by the earlier of both, so that a clock that runs ahead deletes nothing.
  const IntakeClocks clocks{base::wall_now(), base::wall_now()};
  for (const rd_kafka_message_t* message : messages) {
    const ReplaySpan& span = spans_[message->partition];
    if (message->offset >= span.end) {
      collected_to_[message->partition] = span.end;
      continue;
    }
    if (!collect_message(*message, clocks, stop)) return false;
    collected_to_[message->partition] = message->offset + 1;
  }
  // The last offsets of a range may not exist (compaction, transaction markers): then the end of
  // the partition tells that there is nothing more to come. It is told once.
  for (const auto& [partition, end] : consumer_->ends_reached()) {
    const ReplaySpan& span = spans_.at(partition);
    if (end >= span.end) collected_to_[partition] = span.end;
  }
  return true;
}

bool Replay::write_collected(const std::stop_token& stop) {
  const Instant trim_now = std::min(base::wall_now(), instant_from_ms(newest_broker_ms_));
  if (!writer_.write(coalescer_, trim_now, stop, summary_.counts)) return false;
  for (const auto& [partition, offset] : collected_to_) spans_[partition].next = offset;
  collected_to_.clear();
  return true;
}

bool Replay::collect_message(const rd_kafka_message_t& message, const IntakeClocks& clocks,
                             const std::stop_token& stop) {
  const MessageView view(message, topic());
  while (!intake_.decode(view.message())) {
    if (stop.stop_requested()) return false;
    std::this_thread::sleep_for(kAskDecoderAgain);
  }
  ++summary_.messages_read;
  intake_.sort_events(
      clocks, summary_.left_out, [this](const events::Event& event) { coalescer_.add(event); },
      [](const events::Rejected&) {});  // the updater set it aside when it met it
  return true;
}

void Replay::finish_partitions() {
  std::vector<kafka::PartitionOffset> finished;
  std::erase_if(reading_, [&](std::int32_t partition) {
    if (!spans_.at(partition).done()) return false;
    finished.push_back({partition});
    return true;
  });
  if (!finished.empty()) consumer_->pause(finished);
}

bool Replay::all_done() const {
  return reading_.empty();
}

void Replay::throttle(const std::stop_token& stop) {
  if (options_.messages_per_second <= 0) return;
  const std::uint64_t read = summary_.messages_read - paced_;
  paced_ = summary_.messages_read;
  const std::chrono::duration<double> takes{static_cast<double>(read) /
                                            options_.messages_per_second};
  next_turn_ = std::max(next_turn_, Clock::now() - kMadeUpFor) +
               std::chrono::duration_cast<Clock::duration>(takes);
  constexpr milliseconds kStep{50};
  while (!stop.stop_requested() && Clock::now() < next_turn_) {
    std::this_thread::sleep_for(std::min<Clock::duration>(kStep, next_turn_ - Clock::now()));
  }
}

bool Replay::too_much_memory(Clock::time_point now) {
  if (options_.redis_bytes_max == 0 || !parts_.memory || now < memory_due_) return false;
  memory_due_ = now + kMemoryInterval;
  const auto memory = parts_.memory();
  return memory && memory->used_bytes > options_.redis_bytes_max;
}

std::vector<kafka::PartitionOffset> Replay::positions() const {
  std::vector<kafka::PartitionOffset> at;
  for (const auto& [partition, span] : spans_) at.push_back({partition, span.next});
  return at;
}

void Replay::save_position(Clock::time_point now, bool at_once) {
  // Only a later replay with `resume` uses these offsets.
  if (at_once) {
    if (const Status status = consumer_->commit_sync(positions()); !status.ok() && parts_.log) {
      parts_.log(LogLevel::kWarning, status.text());
    }
  } else if (now >= save_due_) {
    save_due_ = now + kSaveInterval;
    consumer_->commit_async(positions());
  }
}

void Replay::report_progress(Clock::time_point now) {
  if (!parts_.progress || now < progress_due_) return;
  progress_due_ = now + options_.progress_interval;
  ReplayProgress progress;
  std::int64_t left = 0;
  for (const auto& [partition, span] : spans_) {
    const auto collected = collected_to_.find(partition);
    const std::int64_t next = collected == collected_to_.end() ? span.next : collected->second;
    left += std::max<std::int64_t>(span.end - next, 0);
  }
  progress.messages_total = total_;
  progress.messages_read = summary_.messages_read;
  progress.elapsed = std::chrono::duration_cast<milliseconds>(now - began_);
  progress.counts = summary_.counts;
  const std::uint64_t gone = total_ - std::min(total_, static_cast<std::uint64_t>(left));
  if (gone > 0) {
    const double per_message =
        static_cast<double>(progress.elapsed.count()) / static_cast<double>(gone);
    progress.left =
        milliseconds{static_cast<milliseconds::rep>(per_message * static_cast<double>(left))};
  }
  parts_.progress(progress);
}

}  // namespace fcap::updater
