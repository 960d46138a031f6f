#include "pipeline_model.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "pipeline_model_process.h"

namespace fcap::updater::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kUsers = 30;

bool is_record(std::string_view key) {
  return !key.starts_with("p:!");
}

}  // namespace

Model::Model(std::uint64_t seed, const ModelOptions& options)
    : options_(options),
      random_(seed),
      logs_(static_cast<std::size_t>(options.partitions)),
      lost_(static_cast<std::size_t>(options.partitions)),
      processes_(static_cast<std::size_t>(options.processes)),
      down_for_(static_cast<std::size_t>(options.processes)),
      checker_(kModelRetention) {
  store_.immediate = true;
  store_.epoch = [this] { return epoch_; };
  if (options_.shards > 0) {
    shards_ = std::make_shared<ModelShards>(store_, options_.shards);
    store_.epoch_of = [this](std::string_view key) { return shards_->epoch_of(key); };
    store_.is_away = [this](std::string_view key) { return shards_->is_away(key); };
  }
  snapshots_.resize(static_cast<std::size_t>(std::max(options_.shards, 1)));
  replicas_.resize(snapshots_.size());
  for (int i = 0; i < options_.partitions; ++i) {
    logs_[static_cast<std::size_t>(i)].owner = i % options_.processes;
  }
  for (int i = 0; i < options_.processes; ++i) start_process(i);
  if (options_.other_updater) {
    other_updater_ = std::make_unique<ConfigPublisher>(
        store_, model_config(), ConfigPublisher::Reader{"h", "v"}, LogCallback{},
        ConfigPublisher::StoreClock{}, [this] { return epoch_of_config(); });
  }
}

Model::~Model() {
  break_operations();
  processes_.clear();
}

Model::Copy Model::copy_of(int shard) const {
  Copy copy{.lost = lost_};
  for (const auto& [key, record] : store_.records()) {
    if (is_in(key, shard)) copy.records.emplace_hint(copy.records.end(), key, record);
  }
  return copy;
}

void Model::step() {
  if (chance(40)) produce();
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (down_for_[i] == 0 && chance(60)) processes_[i]->read();
  }
  run_some_operations();
  now_ += milliseconds{60};
  for (int i = 0; i < options_.processes; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (down_for_[at] > 0 && --down_for_[at] > 0) continue;
    processes_[at]->tick();
    if (chance(20)) processes_[at]->commit(i);
  }
  turn_other_updater();
  compact_one();
  if (random_() % 1000 < options_.trouble_of_1000) some_trouble();
  if (slow_or_refusing_for_ > 0 && --slow_or_refusing_for_ == 0) end_slowness();
  give_owners();
  for (Log& log : logs_) log.is_led = log.is_led || chance(2);
  if (!zombies_.empty() && chance(5)) {
    const auto [process, partition] = *zombies_.begin();
    zombies_.erase(zombies_.begin());
    say(fmt::format("process {} learns that partition {} is another's", process, partition));
    processes_[static_cast<std::size_t>(process)]->give_up(partition);
  }
  if (chance(10)) {
    const int shard = some_shard();
    replicas_[static_cast<std::size_t>(shard)] = copy_of(shard);
  }
  if (shards_) shards_->step();
  look_at_statement();
}

void Model::some_trouble() {
  std::vector<void (Model::*)()> kinds = {&Model::restart_from_snapshot, &Model::fail_over,
                                          &Model::crash};
  if (options_.other_logs) kinds.insert(kinds.end(), {&Model::recreate_logs, &Model::truncate_log});
  if (options_.processes > 1) kinds.insert(kinds.end(), {&Model::rebalance, &Model::rebalance});
  if (options_.slow_or_refusing) kinds.push_back(&Model::slow_down_or_refuse);
  if (options_.leaders_lost) kinds.insert(kinds.end(), {&Model::lose_leader, &Model::lose_leader});
  if (options_.owners_lost) kinds.insert(kinds.end(), {&Model::lose_owners, &Model::lose_owners});
  if (options_.partitions_added) kinds.push_back(&Model::add_partition);
  if (shards_) kinds.push_back(&Model::lose_contact);
  const auto dice = random_() % (kinds.size() + 2);
  if (dice == kinds.size()) {
    const int shard = some_shard();
    snapshots_[static_cast<std::size_t>(shard)] = copy_of(shard);
  } else if (dice > kinds.size()) {
    empty_redis();
  } else {
    (this->*kinds[dice])();
  }
}

void Model::heal() {
  faults_ = false;
  end_slowness();
  if (shards_) shards_->come_back();
  for (Log& log : logs_) {
    log.is_led = true;
    log.unowned_for = std::min(log.unowned_for, 1);
  }
  give_owners();
  kafka_away_ = false;
  down_for_.assign(down_for_.size(), 0);
  for (const auto& [process, partition] : std::exchange(zombies_, {})) {
    processes_[static_cast<std::size_t>(process)]->give_up(partition);
  }
  // Long enough for some looks at the log.
  for (int i = 0; i < 10'000 && (i < 200 || !came_to_rest()); ++i) {
    for (auto& process : processes_) process->read();
    store_.run_all();
    while (shards_ && shards_->waiting() > 0) shards_->run(Fault::kNone);
    now_ += milliseconds{60};
    for (auto& process : processes_) process->tick();
    turn_other_updater();
    look_at_statement();
  }
}

bool Model::came_to_rest() const {
  return checker_.all_complete() &&
         std::ranges::all_of(processes_, [](const auto& process) { return process->at_rest(); });
}

Model::Fingerprints Model::stored() const {
  Fingerprints there;
  ledger::Ledger found;
  for (const auto& [key, record] : store_.records()) {
    if (!is_record(key)) continue;
    EXPECT_EQ(found.decode(record.bytes), ledger::DecodeCode::kOk);
    there[key].insert(found.fingerprints().begin(), found.fingerprints().end());
  }
  return there;
}

std::size_t Model::missing() const {
  Fingerprints there = stored();
  std::size_t count = 0;
  for (const Log& log : logs_) {
    for (const LoggedEvent& event : log.events) {
      const auto erased = erased_.find(event.user);
      if (event.id.empty() || (erased != erased_.end() && event.time <= erased->second)) continue;
      count += 1 - there["p:{" + event.user + "}"].count(ledger::fingerprint(event.id));
    }
  }
  return count;
}

std::size_t Model::not_erased() const {
  Fingerprints there = stored();
  std::size_t count = 0;
  for (const Log& log : logs_) {
    std::map<std::string, Instant> erased;
    for (const LoggedEvent& event : log.events) {
      if (event.id.empty()) erased[event.user] = event.time;
    }
    for (const LoggedEvent& event : log.events) {
      const auto until = erased.find(event.user);
      if (event.id.empty() || until == erased.end() || event.time > until->second) continue;
      count += there["p:{" + event.user + "}"].count(ledger::fingerprint(event.id));
    }
  }
  return count;
}

std::size_t Model::expiring_early() const {
  std::set<std::string> early;
  for (const Log& log : logs_) {
    for (const LoggedEvent& event : log.events) {
      const auto found = store_.records().find("p:{" + event.user + "}");
      if (found == store_.records().end()) continue;
      if (found->second.expire_at < kModelNow + kModelRetention) early.insert(event.user);
    }
  }
  return early.size();
}

std::string Model::story() const {
  std::string all;
  for (const std::string& line : story_) all += "\n  " + line;
  return all;
}

void Model::say(std::string_view what) {
  constexpr std::size_t kLines = 60;
  if (too_early_) return;
  if (story_.size() >= kLines) story_.pop_front();
  std::string ends;
  for (const Log& log : logs_) ends += fmt::format("{} ", log.end());
  story_.push_back(fmt::format("logs to {}: {}", ends, what));
}

std::string Model::marks_in(const FaultStore::Records& records) const {
  std::string all;
  for (const auto& [key, record] : records) {
    if (!is_record(key)) all += ", " + key + " " + record.bytes;
  }
  return all.empty() ? ", no mark" : all;
}

Model::Fault Model::some_fault() {
  if (!faults_ || chance(90)) return Fault::kNone;
  return chance(33) ? Fault::kRefused : chance(50) ? Fault::kLost : Fault::kReplyLost;
}

void Model::produce() {
  for (auto n = random_() % 20; n > 0; --n) produce_into(any(log_count()));
}

// A user's events are in one partition.
void Model::produce_into(int partition) {
  Log& log = logs_[static_cast<std::size_t>(partition)];
  ++produced_;
  LoggedEvent event{.user = fmt::format("u{}-{}", partition, any(kUsers)),
                    .time = kModelNow + milliseconds{produced_}};
  const auto ms = to_ms(event.time);
  const std::string id = fmt::format("i{}-{}-{}", partition, log.made, log.events.size());
  if (random_() % 200 == 0) {
    event.payload = fmt::format(R"({{"type":"erasure","user_id":"{}","timestamp":{},"x":"{}"}})",
                                event.user, ms, id);
    erased_[event.user] = event.time;
  } else {
    event.id = id;
    event.payload = fmt::format(
        R"({{"user_id":"{}","campaign_id":"c","timestamp":{},"imp_id":"{}"}})", event.user, ms, id);
  }
  log.events.push_back(std::move(event));
}

// Kafka deletes what the group has committed, unless this is another cluster, where it has read.
void Model::recreate_logs() {
  say("the topic is recreated");
  for (int i = 0; i < log_count(); ++i) {
    Log& log = logs_[static_cast<std::size_t>(i)];
    log.events.clear();
    ++log.made;
    for (auto n = random_() % 80; n > 0; --n) produce_into(i);
    log.committed = chance(50) ? kafka::PartitionOffset::kNone : log.end();
  }
  for (auto& process : processes_) {
    if (chance(50)) process->suspect_logs();
  }
}

// As an unclean election does: the end is lost, and Kafka's client had trouble with a broker.
void Model::truncate_log() {
  say("a log is truncated");
  for (auto& process : processes_) process->suspect_logs();
  const int partition = any(log_count());
  Log& log = logs_[static_cast<std::size_t>(partition)];
  log.events.resize(log.events.size() - std::min<std::size_t>(log.events.size(), random_() % 40));
  ++log.made;
  for (auto n = random_() % 60; n > 0; --n) produce_into(partition);
  log.committed = std::min(log.committed, log.end());
}

void Model::run_some_operations() {
  for (auto n = random_() % (slow_ ? 3 : 40); n > 0 && store_.waiting() > 0; --n) {
    store_.run(0, some_fault());
  }
  if (!shards_) return;
  for (auto n = random_() % 8; n > 0 && shards_->waiting() > 0; --n) shards_->run(some_fault());
}

void Model::break_operations() {
  while (store_.waiting() > 0) store_.run(0, chance(50) ? Fault::kReplyLost : Fault::kLost);
  while (shards_ && shards_->waiting() > 0) {
    shards_->run(chance(50) ? Fault::kReplyLost : Fault::kLost);
  }
}

void Model::restart_from_snapshot() {
  const int shard = some_shard();
  const Copy snapshot = snapshots_[static_cast<std::size_t>(shard)];
  say(fmt::format("Redis {} restarts from a snapshot{}", shard, marks_in(snapshot.records)));
  break_operations();
  restore(snapshot, shard);
  if (shards_) {
    shards_->restart(shard);
  } else {
    ++epoch_;
  }
}

// To a replica that was behind. What waits may meet the new master.
void Model::fail_over() {
  const int shard = some_shard();
  const Copy replica = replicas_[static_cast<std::size_t>(shard)];
  say(fmt::format("Redis {} fails over to a replica{}", shard, marks_in(replica.records)));
  restore(replica, shard);
  snapshots_[static_cast<std::size_t>(shard)] = replica;
  if (shards_) {
    shards_->fail_over(shard);
  } else {
    ++epoch_;
  }
}

// For long enough that others do not wait for it.
void Model::lose_contact() {
  const int shard = some_shard();
  const int steps = 1 + any(150);
  say(fmt::format("Redis {} cannot be reached for {} steps", shard, steps));
  shards_->go_away(shard, steps);
}

void Model::crash() {
  const int process = any(options_.processes);
  say(fmt::format("process {} crashes", process));
  break_operations();
  std::erase_if(zombies_, [process](const auto& zombie) { return zombie.first == process; });
  processes_[static_cast<std::size_t>(process)].reset();
  start_process(process);
}

void Model::start_process(int process) {
  processes_[static_cast<std::size_t>(process)] = std::make_unique<Process>(*this);
  std::vector<PartitionOffset> partitions;
  for (int i = 0; i < log_count(); ++i) {
    if (logs_[static_cast<std::size_t>(i)].owner == process) partitions.push_back({i});
  }
  take_over(process, std::move(partitions));
}

// The one that has a partition may go on for a while without knowing that it is another's.
void Model::rebalance() {
  const int partition = any(log_count());
  Log& log = logs_[static_cast<std::size_t>(partition)];
  const int old = std::exchange(log.owner, any(options_.processes));
  if (old == log.owner) return;
  ++rebalances_;
  log.unowned_for = 0;
  kafka_away_ = false;
  const bool zombie = old != kNobody && chance(50);
  say(fmt::format("partition {} goes from process {} to {}{}", partition, old, log.owner,
                  zombie ? ", which the first does not know" : ""));
  if (zombie) {
    zombies_.emplace(old, partition);
  } else if (old != kNobody) {
    processes_[static_cast<std::size_t>(old)]->give_up(partition);
  }
  if (zombies_.erase({log.owner, partition}) > 0) {
    processes_[static_cast<std::size_t>(log.owner)]->give_up(partition);
  }
  // What its new owner has under way is in front of what it asks now.
  while (store_.waiting() > 0) store_.run(0, some_fault());
  take_over(log.owner, {{partition}});
}

void Model::take_over(int process, std::vector<PartitionOffset> partitions) {
  down_for_[static_cast<std::size_t>(process)] = 0;
  store_.immediate = true;  // assignment waits for its answers
  processes_[static_cast<std::size_t>(process)]->assign(std::move(partitions));
  store_.immediate = false;
}

void Model::lose_leader() {
  const int partition = any(log_count());
  say(fmt::format("partition {} loses its leader", partition));
  logs_[static_cast<std::size_t>(partition)].is_led = false;
}

void Model::slow_down_or_refuse() {
  end_slowness();
  ++slow_or_refusing_phases_;
  slow_or_refusing_for_ = 20 + any(200);
  switch (any(3)) {
    case 0:
      say("Redis becomes slow");
      slow_ = true;
      return;
    case 1:
      say("Redis refuses scripts");
      store_.refuse_exchanges = true;
      return;
    default:
      say("Redis refuses expiries");
      store_.refuse_expiries = true;
  }
}

void Model::end_slowness() {
  slow_ = false;
  slow_or_refusing_for_ = 0;
  store_.refuse_exchanges = false;
  store_.refuse_expiries = false;
}

// As the compactor does; without it, what is read again and again would make records huge.
void Model::compact_one() {
  if (store_.records().empty()) return;
  auto at = store_.records().begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random_() % store_.records().size()));
  ledger::Ledger found;
  if (!is_record(at->first) || found.decode(at->second.bytes) != ledger::DecodeCode::kOk) return;
  ledger::CompactOptions options;
  options.trim_now = kModelNow;
  at->second.bytes = ledger::compact(found, at->second.bytes, options).record;
}

}  // namespace fcap::updater::testing
