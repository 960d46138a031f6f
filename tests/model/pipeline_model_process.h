#pragma once

// One updater of the pipeline's model, which is what a crash takes with it.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pipeline_model.h"
#include "updater/pipeline/gap_filler.h"
#include "updater/pipeline/gap_times.h"

namespace fcap::updater::testing {

inline constexpr Instant kModelNow = instant_from_ms(1'700'000'000'000);
inline constexpr std::chrono::days kModelRetention{32};

inline redis::ConfigRecord model_config() {
  redis::ConfigRecord config;
  config.key_prefix = "p";
  config.retention = kModelRetention;
  return config;
}

// As large a table of known records as an updater has takes half of the model's time.
inline WriteOptions model_writes() {
  WriteOptions options;
  options.known_records_max = 256;
  return options;
}

class Model::Process final : private OffsetSource, private LogLooks {
 public:
  explicit Process(Model& model)
      : model_(&model),
        partitions_(
            model.store_, [&model] { return model.epoch_; }, *this, marks(model.options_),
            model.metrics_, [&model](LogLevel, std::string_view text) { model.say(text); },
            model.shards_),
        writer_(model.store_, nullptr, model_writes(), model.metrics_, {},
                [&model] { return model.connections(); }),
        coalescer_({"p", kModelRetention}),
        stretches_(model),
        intake_(*model.decoder_, {}),
        filler_({.records = {"p", kModelRetention}}, filler_parts(), model.metrics_),
        publisher_(model.store_, model_config(), {"g", "t"}, {}, {},
                   [&model] { return model.epoch_of_config(); }) {
    partitions_.set_log_looks(this);
    if (model.shards_) {
      writer_.set_away([this](std::string_view key) {
        return partitions_.recovery().is_away(redis::slot_of(key));
      });
    }
    writer_.set_passed([this](const Batch& batch) {
      if (batch.gap_ticket != 0) return !filler_.current(batch);
      return std::none_of(batch.ranges.begin(), batch.ranges.end(), [this](const auto& range) {
        return partitions_.current(range.partition, range.generation);
      });
    });
  }

  void assign(std::vector<PartitionOffset> partitions) {
    writer_.forget_known();
    partitions_.assign(partitions);
    for (const PartitionOffset& at : partitions) positions_[at.partition] = at.offset;
  }
  void give_up(std::int32_t partition) {
    const PartitionOffset at{partition};
    partitions_.revoke({&at, 1});
    positions_.erase(partition);
  }
  void suspect_logs() { partitions_.suspect_logs(); }

  void read() {
    if (writer_.full() || writer_.failing() || partitions_.checking()) return;
    std::vector<PartitionOffset> places;
    partitions_.to_place(places);
    for (const PartitionOffset& at : places) {
      positions_[at.partition] = at.offset;
      partitions_.placed(at.partition);
    }
    if (positions_.empty()) return;
    auto read = positions_.begin();
    std::advance(read, model_->any(static_cast<int>(positions_.size())));
    auto& [partition, position] = *read;
    const Log& log = log_of(partition);
    if (position == PartitionOffset::kNone || !log.is_led) return;
    // Out of range: Kafka begins at the earliest.
    if (position > log.end()) position = Log::kStart;
    const bool waits = !partitions_.awaited(partition);
    Batch& batch = writer_.take();
    for (int n = 1 + model_->any(30); n > 0 && position < log.end(); --n, ++position) {
      const LoggedEvent& logged = log.at(position);
      const bool taken =
          partitions_.take(partition, Delivered{.offset = position, .payload = logged.payload});
      ASSERT_EQ(taken, !waits);
      if (!taken) continue;
      ASSERT_TRUE(intake_.decode(logged.payload));
      LeftOut left_out;
      intake_.sort_events(
          {kModelNow, kModelNow}, left_out,
          [&](const events::Event& event) {
            coalescer_.add(event);
            ++batch.events;
          },
          [](const events::Rejected&) { ADD_FAILURE() << "everything in the log is an event"; });
    }
    if (batch.events > 0 && std::ranges::any_of(positions_, [this](const auto& at) {
          return !partitions_.awaited(at.first);
        })) {
      ++model_->read_beside_waiting_;
    }
    coalescer_.finish(batch.writes);
    partitions_.seal(batch.ranges);
    writer_.submit(batch);
  }

  void tick() {
    const auto now = model_->now_;
    std::vector<Batch*> done;
    writer_.tick(now, done);
    for (Batch* batch : done) {
      if (batch->gap_ticket != 0) filler_.written(*batch);
      partitions_.complete_batch(*batch);
      writer_.release(*batch);
    }
    const auto losses = model_->metrics_.mark_losses.value();
    partitions_.tick(now, kModelNow);
    if (model_->metrics_.mark_losses.value() != losses) writer_.forget_known();
    filler_.tick(now, !writer_.failing() && (!model_->faults_ || model_->chance(70)));
    publish(now);
  }

  /// Kafka takes commits of whoever has the partition.
  void commit(int self) {
    std::vector<PartitionOffset> offsets;
    partitions_.collect_commits(offsets);
    for (const PartitionOffset& at : offsets) {
      Log& log = model_->log_of(at.partition);
      if (log.owner == self) log.committed = at.offset;
    }
  }

  [[nodiscard]] std::optional<std::int64_t> low_water(std::int32_t partition) const {
    return partitions_.low_water(partition);
  }

  [[nodiscard]] bool at_rest() const {
    return writer_.batches_in_flight() == 0 && partitions_.recovery().settled() &&
           !partitions_.checking() && partitions_.recovery().offsets_missing() == 0 &&
           !filler_.busy() && publisher_.trouble().empty() &&
           std::ranges::all_of(positions_, [this](const auto& at) {
             const std::int64_t end = log_of(at.first).end();
             return at.second == end && partitions_.low_water(at.first) == end;
           });
  }

 private:
  /// Reads stretches of a log as it is when they are read.
  class Stretches final : public GapLog {
   public:
    explicit Stretches(Model& model) : model_(&model) {}
    void read(std::uint64_t ticket, std::int32_t partition, std::int64_t from,
              std::int64_t to) override {
      EXPECT_FALSE(reading_.contains(partition));
      reading_[partition] = {ticket, std::max(from, Log::kStart), to};
    }
    void stop(std::int32_t partition) override { reading_.erase(partition); }
    std::optional<Chunk> next_chunk(std::size_t messages_max) override {
      if (reading_.empty() || (model_->faults_ && model_->chance(30))) return std::nullopt;
      const Log& log = model_->log_of(reading_.begin()->first);
      Stretch& at = reading_.begin()->second;
      Chunk chunk{.ticket = at.ticket};
      if (at.to > log.end()) chunk.failure = "the log ends before";
      if (!log.is_led) chunk.failure = "no leader";
      if (model_->faults_ && model_->chance(3)) chunk.failure = "no broker";
      if (!chunk.failure.empty()) {
        reading_.erase(reading_.begin());
        return chunk;
      }
      const auto most = static_cast<std::int64_t>(std::min<std::size_t>(messages_max, 10));
      for (std::int64_t n = 0; n < most && at.next < at.to; ++n, ++at.next) {
        chunk.messages.push_back({{.offset = at.next, .payload = log.at(at.next).payload}});
      }
      chunk.end = at.next >= at.to;
      if (chunk.end) reading_.erase(reading_.begin());
      return chunk;
    }

   private:
    struct Stretch {
      std::uint64_t ticket;
      std::int64_t next;
      std::int64_t to;
    };
    Model* model_;
    std::map<std::int32_t, Stretch> reading_;
  };

  // As the Updater and its Daemon do.
  void publish(BatchWriter::Clock::time_point now) {
    const Instant latest = model_->after_all_events();
    std::vector<GapEnd> ends;
    partitions_.recovery().list_gap_ends(ends);
    gap_times_.look(ends, latest);
    publisher_.set_open_gaps(gap_times_.open_gaps());
    MarkNews news{.partitions = model_->known_partitions(),
                  .latest = latest,
                  .connections = model_->connections()};
    partitions_.recovery().tell_marks(news);
    publisher_.set_marks(std::move(news));
    publisher_.tick(now, model_->wall_now());
  }

  [[nodiscard]] const Log& log_of(std::int32_t partition) const {
    return model_->log_of(partition);
  }

  static MarkOptions marks(const ModelOptions& model) {
    using std::chrono::milliseconds;
    MarkOptions options;
    options.key_prefix = "p";
    options.group_id = "g";
    options.topic = "t";
    options.log_interval = milliseconds{1200};
    options.log_interval_min = milliseconds{60};
    options.gap_min = model.gap_min;
    options.piece_offsets_max = 25;
    return options;
  }

  GapFillerParts filler_parts() {
    return {.partitions = &partitions_,
            .writer = &writer_,
            .store = &model_->store_,
            .log = &stretches_,
            .intake = &intake_,
            .clocks =
                [] {
                  return IntakeClocks{kModelNow, kModelNow};
                },
            .reject =
                [](std::int32_t, const GapLog::GapMessage&, const events::Rejected&) {
                  ADD_FAILURE() << "everything in the log is an event";
                },
            .filled =
                [this](const GapPiece& piece, std::optional<Instant> newest) {
                  gap_times_.filled(piece.partition, piece.from, newest);
                }};
  }

  void ask(std::span<const std::int32_t> partitions) override {
    for (const std::int32_t id : partitions) {
      const std::int64_t committed = log_of(id).committed;
      bounds_[id] = {committed >= 0 ? std::optional(committed) : std::nullopt, Log::kStart};
    }
  }
  std::optional<Result<LogBounds>> answer(std::int32_t partition) const override {
    // At an assignment at once, later when it pleases.
    if (!model_->store_.immediate && model_->faults_ && model_->chance(50)) return std::nullopt;
    if (!log_of(partition).is_led) {
      return Result<LogBounds>(Status::error(StatusCode::kUnavailable, "no leader", true));
    }
    return Result<LogBounds>(bounds_.at(partition));
  }

  // Looks see the log as it is when they are made.
  void ask(LookQuestion question) override {
    const Log& log = log_of(question.partition);
    LookAnswer answer{.partition = question.partition, .ticket = question.ticket};
    answer.look = {.cluster = "c", .low = Log::kStart, .high = log.end()};
    for (const std::int64_t offset : question.offsets) {
      answer.look.found.push_back(
          offset >= Log::kStart && offset < log.end()
              ? std::optional(LogPoint{offset, -1, hash_message({}, log.at(offset).payload)})
              : std::nullopt);
    }
    if (!log.is_led || (model_->faults_ && model_->chance(20))) {
      answer.status = Status::error(StatusCode::kUnavailable, "no", true);
    }
    looks_.push_back(std::move(answer));
  }
  std::optional<LookAnswer> take() override {
    if (looks_.empty() || (model_->faults_ && model_->chance(30))) return std::nullopt;
    LookAnswer answer = std::move(looks_.front());
    looks_.pop_front();
    return answer;
  }

  Model* model_;
  std::map<std::int32_t, LogBounds> bounds_;
  std::deque<LookAnswer> looks_;
  PartitionSet partitions_;
  BatchWriter writer_;
  Coalescer coalescer_;
  Stretches stretches_;
  Intake intake_;
  GapFiller filler_;
  GapTimes gap_times_{std::chrono::milliseconds{1}};
  ConfigPublisher publisher_;
  std::map<std::int32_t, std::int64_t> positions_;  // of the partitions that it takes for its own
};

}  // namespace fcap::updater::testing
