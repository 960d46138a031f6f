#include "updater/compaction/sweep.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "redis/blocking_call.h"
#include "redis/server_facts.h"

namespace fcap::updater {
namespace {

using redis::Reply;
using redis::TransportCode;
using std::chrono::milliseconds;

constexpr milliseconds kRetryAfter{500};
constexpr milliseconds kNapMax{50};

std::unique_ptr<SweepKeys> make_source(redis::Client& client, const SweepOptions& options) {
  const SweepKeys::Options keys{.key_prefix = options.key_prefix,
                                .scan_count = options.scan_count,
                                .deadline = options.deadline};
  return client.is_cluster() ? make_cluster_keys(client, keys) : make_server_keys(client, keys);
}

}  // namespace

Sweep::Sweep(redis::Client& client, Store& store, const SweepOptions& options,
             std::shared_ptr<const RuleSet> rules,
             std::function<void(const SweepProgress&)> progress)
    : client_(&client),
      options_(options),
      progress_(std::move(progress)),
      source_(make_source(client, options)),
      watched_(redis::make_watched_records(client)),
      records_(
          store, options.records, [this] { return trim_now(); }, metrics_,
          [this](const RecordCompactor::Done& done) { count(done); }) {
  records_.set_watched(watched_.get());
  records_.set_rules(std::move(rules));
}

std::optional<Instant> Sweep::trim_now() const {
  // No broker is asked here, so the server's clock is the second one: one fast clock deletes
  // nothing.
  return base::wall_now() + std::min(server_ahead_, milliseconds{0});
}

// Where there are several servers, the slowest clock counts.
Status Sweep::begin() {
  const std::vector<std::string> masters = source_->masters();
  std::vector<redis::BlockingCall> calls;
  for (const std::string& master : masters) {
    calls.push_back({.words = {"TIME"}, .key = master});
    calls.push_back({.words = {"DBSIZE"}, .key = master});
  }
  std::string refusal;
  keys_total_ = 0;
  server_ahead_ = milliseconds{0};
  TransportCode code = TransportCode::kUnavailable;
  if (!masters.empty()) {
    code = redis::call_and_wait(
        *client_, calls, options_.deadline, [&](std::size_t index, const Reply& reply) {
          if (reply.kind == Reply::Kind::kError) refusal = reply.text;
          if (index % 2 == 0) {
            redis::ServerFacts server;
            server.take_time(reply, base::wall_now());
            server_ahead_ =
                std::min(server_ahead_, server.clock_difference.value_or(milliseconds{0}));
          } else {
            keys_total_ += static_cast<std::uint64_t>(std::max<std::int64_t>(reply.integer, 0));
          }
        });
  }
  if (!refusal.empty()) return Status::error(StatusCode::kRefused, "Redis: " + refusal);
  if (code == TransportCode::kOk) return {};
  return Status::error(StatusCode::kUnavailable,
                       "redis.addresses: Redis does not answer: " + client_->last_error(), true);
}

Status Sweep::find_keys(const std::stop_token& stop) {
  const Clock::time_point give_up = Clock::now() + options_.patience;
  while (!stop.stop_requested()) {
    Status found = source_->next(keys_);
    if (found.ok() || Clock::now() >= give_up) return found;
    keys_.clear();
    std::this_thread::sleep_for(kRetryAfter);
  }
  return {};
}

void Sweep::sweep_keys(std::span<const std::string> keys, const std::stop_token& stop) {
  std::vector<redis::BlockingCall> calls;
  calls.reserve(keys.size());
  for (const std::string& key : keys) calls.push_back({.words = {"PTTL", key}, .key = key});
  without_expiry_.assign(keys.size(), false);
  // An expiry that cannot be asked for is left for the next sweep.
  (void)redis::call_and_wait(
      *client_, calls, options_.deadline, [this](std::size_t index, const Reply& reply) {
        without_expiry_[index] = reply.kind == Reply::Kind::kInteger && reply.integer == -1;
      });
  for (std::size_t i = 0; i < keys.size() && !stop.stop_requested(); ++i) {
    while (records_.full()) {
      records_.wait(Clock::now() + options_.deadline);
      records_.tick();
    }
    ++summary_.records;
    records_.start(keys[i], without_expiry_[i]);
    records_.tick();
  }
}

void Sweep::count(const RecordCompactor::Done& done) {
  using Outcome = RecordCompactor::CompactionOutcome;
  summary_.bytes_before += done.bytes_before;
  summary_.bytes_after += done.bytes_after;
  switch (done.outcome) {
    case Outcome::kCompacted:
      ++summary_.compacted;
      if (done.rewrite) ++summary_.expiries_repaired;
      break;
    case Outcome::kUnneeded:
    case Outcome::kMissing:
      ++summary_.unneeded;
      break;
    case Outcome::kConflict:
      ++summary_.conflicts;
      break;
    case Outcome::kFailed:
      ++summary_.failed;
      break;
    case Outcome::kUndecodable:
      ++summary_.undecodable;
      break;
  }
}

void Sweep::keep_pace(const std::stop_token& stop) {
  const double seconds =
      static_cast<double>(summary_.records) / static_cast<double>(options_.keys_per_second);
  const auto due =
      began_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (!stop.stop_requested() && Clock::now() < due) {
    records_.wait(std::min<Clock::time_point>(due, Clock::now() + kNapMax));
    records_.tick();
    report(Clock::now());
  }
}

void Sweep::report(Clock::time_point now) {
  if (!progress_ || now < report_due_) return;
  report_due_ = now + options_.progress_interval;
  SweepProgress progress;
  progress.records = summary_.records;
  progress.keys_total = keys_total_;
  progress.elapsed = std::chrono::duration_cast<milliseconds>(now - began_);
  if (summary_.records > 0 && keys_total_ > 0) {
    const double share =
        std::min(1.0, static_cast<double>(summary_.records) / static_cast<double>(keys_total_));
    progress.left = milliseconds{static_cast<std::int64_t>(
        static_cast<double>(progress.elapsed.count()) * (1.0 - share) / share)};
  }
  progress_(progress);
}

Result<SweepSummary> Sweep::run(const std::stop_token& stop) {
  const Clock::time_point give_up = Clock::now() + options_.patience;
  Status ready = begin();
  while (!ready.ok() && ready.retryable() && Clock::now() < give_up && !stop.stop_requested()) {
    std::this_thread::sleep_for(kRetryAfter);
    ready = begin();
  }
  if (!ready.ok() && !stop.stop_requested()) return ready;
  began_ = Clock::now();
  report_due_ = began_ + options_.progress_interval;
  while (!stop.stop_requested() && !source_->over()) {
    if (Status status = find_keys(stop); !status.ok()) return status;
    std::span<const std::string> left = keys_;
    while (!left.empty() && !stop.stop_requested()) {
      const auto count = std::min(left.size(), static_cast<std::size_t>(options_.scan_count));
      sweep_keys(left.first(count), stop);
      left = left.subspan(count);
      report(Clock::now());
      keep_pace(stop);
    }
  }
  while (records_.in_flight() > 0) {
    records_.wait(Clock::now() + options_.deadline);
    records_.tick();
  }
  summary_.complete = source_->over() && !stop.stop_requested();
  summary_.elapsed = std::chrono::duration_cast<milliseconds>(Clock::now() - began_);
  return summary_;
}

std::string progress_line(const SweepProgress& progress) {
  std::string line =
      fmt::format("{} records of at most {} keys", progress.records, progress.keys_total);
  const double seconds = std::chrono::duration<double>(progress.elapsed).count();
  if (seconds > 0)
    line += fmt::format(", {:.0f}/s", static_cast<double>(progress.records) / seconds);
  if (progress.left) line += fmt::format(", about {} s left", progress.left->count() / 1000);
  return line;
}

std::string summary_text(const SweepSummary& summary) {
  return fmt::format(
      "{}: {} records in {:.1f} s\ncompacted {}, already compact {}, given an expiry "
      "{}\nunreadable {}, changed meanwhile {}, failed {}\n{} bytes before, {} after",
      summary.complete ? "complete" : "stopped", summary.records,
      std::chrono::duration<double>(summary.elapsed).count(), summary.compacted, summary.unneeded,
      summary.expiries_repaired, summary.undecodable, summary.conflicts, summary.failed,
      summary.bytes_before, summary.bytes_after);
}

std::string summary_json(const SweepSummary& summary) {
  const nlohmann::ordered_json json = {
      {"complete", summary.complete},
      {"records", summary.records},
      {"compacted", summary.compacted},
      {"unneeded", summary.unneeded},
      {"expiries_repaired", summary.expiries_repaired},
      {"undecodable", summary.undecodable},
      {"conflicts", summary.conflicts},
      {"failed", summary.failed},
      {"bytes_before", summary.bytes_before},
      {"bytes_after", summary.bytes_after},
      {"elapsed_ms", summary.elapsed.count()},
  };
  return json.dump();
}

}  // namespace fcap::updater
