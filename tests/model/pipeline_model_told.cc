// Partitions without owners in the pipeline's model, and what `!config` says of events that went
// with an emptied Redis.
#include <algorithm>

#include <fmt/format.h>

#include "ledger/ids.h"
#include "pipeline_model.h"
#include "pipeline_model_process.h"

namespace fcap::updater::testing {
namespace {

using std::chrono::milliseconds;

const std::string kConfig = "p:!config";

}  // namespace

Instant Model::wall_now() const {
  return kModelNow + std::chrono::floor<milliseconds>(now_ - began_);
}

Instant Model::after_all_events() const {
  constexpr std::chrono::seconds kBehind{1};
  return std::chrono::floor<std::chrono::seconds>(kModelNow + milliseconds{produced_}) + kBehind;
}

// --- Partitions without owners.

// A process ends, and the group gives its partitions to others only after its session; or Kafka is
// away, and processes that start have none. Redis may be emptied with it, as when a rack reboots.
void Model::lose_owners() {
  const int for_steps = 30 + any(250);
  kafka_away_ = chance(33);
  const int ended = any(options_.processes);
  say(fmt::format(
      "{} ends, for {} steps",
      kafka_away_ ? "Kafka is away and every process" : fmt::format("process {}", ended),
      for_steps));
  break_operations();
  for (int i = 0; i < options_.processes; ++i) {
    if (i != ended && !kafka_away_) continue;
    for (Log& log : logs_) {
      if (log.owner != i) continue;
      log.owner = kNobody;
      log.unowned_for = for_steps;
    }
    std::erase_if(zombies_, [i](const auto& zombie) { return zombie.first == i; });
    processes_[static_cast<std::size_t>(i)].reset();
    start_process(i);
    down_for_[static_cast<std::size_t>(i)] = chance(50) ? 0 : any(for_steps);
  }
  if (chance(50)) empty_redis();
}

void Model::give_owners() {
  for (int i = 0; i < log_count(); ++i) {
    Log& log = logs_[static_cast<std::size_t>(i)];
    if (log.unowned_for == 0 || --log.unowned_for > 0) continue;
    kafka_away_ = false;
    log.owner = any(options_.processes);
    say(fmt::format("partition {} is given to process {}", i, log.owner));
    if (zombies_.erase({log.owner, i}) > 0) {
      processes_[static_cast<std::size_t>(log.owner)]->give_up(i);
    }
    while (store_.waiting() > 0) store_.run(0, some_fault());
    take_over(log.owner, {{i}});
  }
}

void Model::add_partition() {
  constexpr std::size_t kMost = 4;
  if (logs_.size() == kMost) return;
  say("a partition is added");
  const int added = log_count();
  logs_.emplace_back().owner = any(options_.processes);
  lost_.emplace_back();
  while (store_.waiting() > 0) store_.run(0, some_fault());
  take_over(logs_.back().owner, {{added}});
}

// --- What is lost, and what is said of it.

void Model::empty_redis() {
  const bool restarts = chance(50);
  const int shard = some_shard();
  say(fmt::format("Redis {} {}", shard, restarts ? "restarts empty" : "is emptied"));
  if (restarts) break_operations();
  restore({}, shard);
  if (!restarts) return;
  if (shards_) {
    shards_->restart(shard);
  } else {
    ++epoch_;
  }
}

void Model::restore(const Copy& copy, int shard) {
  if (!shards_) note_lost(copy);
  std::erase_if(store_.records(), [&](const auto& it) { return is_in(it.first, shard); });
  store_.records().insert(copy.records.begin(), copy.records.end());
}

// Whoever finds no `!config` knows of the loss. Data that has one has lost what it had lost when it
// was copied; that the rest is older is known to nobody before the marks are compared. What is said
// in a cluster, ShardModel looks at.
void Model::note_lost(const Copy& copy) {
  if (copy.records.contains(kConfig)) {
    lost_ = copy.lost;
    lost_.resize(logs_.size());
    return;
  }
  emptied_ = other_lacked_ = now_;
  Fingerprints there = stored();
  for (std::size_t i = 0; i < logs_.size(); ++i) {
    const Log& log = logs_[i];
    if (lost_[i].made != log.made) lost_[i] = {.made = log.made};
    for (std::int64_t offset = Log::kStart; offset < log.end(); ++offset) {
      const LoggedEvent& event = log.at(offset);
      if (event.id.empty() ||
          !there["p:{" + event.user + "}"].contains(ledger::fingerprint(event.id)))
        continue;
      if (!lost_[i].offsets.insert(offset).second) continue;
      ++events_lost_;
      if (log.owner == kNobody) ++lost_without_owner_;
    }
  }
}

bool Model::is_back(const LoggedEvent& event) {
  const auto erased = erased_.find(event.user);
  if (erased != erased_.end() && event.time <= erased->second) return true;
  const auto record = store_.records().find("p:{" + event.user + "}");
  if (record == store_.records().end()) return false;
  EXPECT_EQ(found_.decode(record->second.bytes), ledger::DecodeCode::kOk);
  return std::ranges::find(found_.fingerprints(), ledger::fingerprint(event.id)) !=
         found_.fingerprints().end();
}

// Checkers are not told of events that are read again in their place.
void Model::drop_what_is_read_in_line(int log) {
  const int owner = logs_[static_cast<std::size_t>(log)].owner;
  if (owner == kNobody) return;
  const auto at = processes_[static_cast<std::size_t>(owner)]->low_water(log);
  auto& offsets = lost_[static_cast<std::size_t>(log)].offsets;
  if (at) offsets.erase(offsets.lower_bound(*at), offsets.end());
}

// Whatever a count that is complete for a Checker reaches back to must be there.
void Model::look_at_statement() {
  const auto config = store_.records().find(kConfig);
  const std::string* const text =
      config == store_.records().end() ? nullptr : &config->second.bytes;
  checker_.look(text);
  if (shards_) return;
  // An updater may have to look once more to see that another topic's has stated the loss.
  constexpr std::chrono::seconds kUntilAllHaveLooked{11};
  if (other_updater_ && now_ - emptied_ < kUntilAllHaveLooked) return;
  const Instant since = checker_.complete_since();
  for (int i = 0; i < log_count(); ++i) {
    const Log& log = logs_[static_cast<std::size_t>(i)];
    Lost& lost = lost_[static_cast<std::size_t>(i)];
    if (lost.made != log.made) lost.offsets.clear();
    if (!lost.offsets.empty()) drop_what_is_read_in_line(i);
    while (!lost.offsets.empty() && log.at(*lost.offsets.rbegin()).time >= since) {
      const std::int64_t offset = *lost.offsets.rbegin();
      lost.offsets.erase(offset);
      if (too_early_ || is_back(log.at(offset))) continue;
      say(fmt::format("offset {} of partition {} is missing, and !config is {}", offset, i,
                      text == nullptr ? "gone" : *text));
      too_early_ = true;
    }
  }
}

// It has nothing to read again, and states a loss for a moment only: the others may not see it.
void Model::turn_other_updater() {
  constexpr std::chrono::seconds kCompared{1};
  if (!other_updater_) return;
  if (other_updater_->trouble().empty()) other_lacked_ = now_;
  if (now_ - other_lacked_ >= kCompared) other_compared_ = now_;
  OpenGaps gaps{.missing_before = {{0, std::nullopt}, {1, std::nullopt}}};
  other_updater_->set_open_gaps(std::move(gaps));
  other_updater_->set_marks({.compared = {{0, other_compared_}, {1, other_compared_}},
                             .partitions = 2,
                             .latest = after_all_events(),
                             .connections = connections()});
  other_updater_->tick(now_, wall_now());
}

}  // namespace fcap::updater::testing
