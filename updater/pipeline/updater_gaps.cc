// How the updater fills the gaps of its partitions while it reads live messages.
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "updater/pipeline/updater.h"

namespace fcap::updater {

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
  parts.clocks = [this] {
    if (!clock_known_) compare_clocks();
    return clocks();
  };
  parts.reject = [this](std::int32_t partition, const GapLog::GapMessage& message,
                        const events::Rejected& why) {
    reject(*message.whole, why, partitions_->generation(partition));
    return true;
  };
  parts.report = parts_.log;
  parts.filled = [this](const GapPiece& segment, std::optional<Instant> newest) {
    if (newest) *newest += options_.intake.future_allowed;
    gap_times_.filled(segment.partition, segment.from, newest);
  };
  filler_ = std::make_unique<GapFiller>(
      GapFillerOptions{.records = {options_.key_prefix, options_.intake.retention},
                       .topic = options_.consumer.topic,
                       .read_deadline = options_.write.deadline},
      std::move(parts), *metrics_);
  return {};
}

// Later than any event that is accepted now, and the same for a second, because each change is
// written.
Instant Updater::after_all_events() const {
  constexpr std::chrono::seconds kBehind{1};
  return std::chrono::floor<std::chrono::seconds>(clocks().latest) + kBehind +
         options_.intake.future_allowed;
}

void Updater::note_expired() {
  const auto stated = gap_times_.missing_before();
  for (const ExpiredEvents& events : partitions_->take_expired()) {
    Instant before = after_all_events();
    if (events.newest) {
      before = std::min(before, *events.newest + options_.intake.future_allowed);
    } else if (const auto gap = stated.find(events.partition); gap != stated.end() && gap->second) {
      // Gaps are filled the newest first.
      before = gap->second->before;
    }
    if (!expired_) expired_.emplace(before, SlotSet{});
    expired_->before = std::max(expired_->before, before);
    expired_->slots |= events.slots;
  }
}

OpenGaps Updater::open_gaps() {
  if (!clock_known_) compare_clocks();
  note_expired();
  std::vector<GapEnd> ends;
  partitions_->list_gap_ends(ends);
  gap_times_.look(ends, after_all_events());
  return {gap_times_.missing_before(), expired_};
}

MarkNews Updater::mark_news() {
  MarkNews news;
  partitions_->list_compared(news.compared);
  news.partitions = parts_.watch->topic(Clock::now()).partitions;
  news.gone = partitions_->take_marks_gone();
  news.latest = after_all_events();
  news.connections = parts_.epoch();
  return news;
}

void Updater::fill_gaps(Clock::time_point now, bool read) {
  if (!filler_) return show_gaps(*partitions_, *metrics_);
  const Clock::time_point began = Clock::now();
  filler_->tick(now, pace_.due(now) && read);
  pace_.worked(Clock::now() - began);
}

}  // namespace fcap::updater
