#include "updater/compaction/sweep.h"

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "ledger/user_key.h"
#include "redis/blocking_call.h"

namespace fcap::updater {
namespace {

using redis::Reply;
using redis::TransportCode;
using std::chrono::milliseconds;

constexpr milliseconds kRetryAfter{500};
constexpr milliseconds kNapMax{50};

std::int64_t number_in(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Sweep::Sweep(redis::Client& client, Store& store, const SweepOptions& options,
             std::shared_ptr<const RuleSet> rules,
             std::function<void(const SweepProgress&)> progress)
    : client_(&client),
      options_(options),
      progress_(std::move(progress)),
      records_(
          store, options.records, [this] { return trim_now(); }, metrics_,
          [this](const RecordCompactor::Done& done) { count(done); }) {
  records_.set_rules(std::move(rules));
}

std::optional<Instant> Sweep::trim_now() const {
  // No broker is asked here, so the server's clock is the second one: one fast clock deletes
  // nothing.
  return base::wall_now() + std::min(server_ahead_, milliseconds{0});
}

Status Sweep::begin() {
  const redis::BlockingCall calls[] = {{.words = {"TIME"}, .key = {}},
                                       {.words = {"DBSIZE"}, .key = {}}};
  std::string refusal;
  const TransportCode code = redis::call_and_wait(
      *client_, calls, options_.deadline, [&](std::size_t index, const Reply& reply) {
        if (reply.kind == Reply::Kind::kError) refusal = reply.text;
        if (index == 0 && reply.elements.size() == 2) {
          const std::int64_t ms =
              number_in(reply.elements[0].text) * 1000 + number_in(reply.elements[1].text) / 1000;
          server_ahead_ = instant_from_ms(ms) - base::wall_now();
        } else if (index == 1) {
          keys_total_ = static_cast<std::uint64_t>(std::max<std::int64_t>(reply.integer, 0));
        }
      });
  if (!refusal.empty()) return Status::error(StatusCode::kRefused, "Redis: " + refusal);
  if (code == TransportCode::kOk) return {};
  return Status::error(StatusCode::kUnavailable,
                       "redis.addresses: Redis does not answer: " + client_->last_error(), true);
}

Status Sweep::scan(const std::stop_token& stop) {
  const std::string pattern = ledger::user_key_pattern(options_.key_prefix);
  const std::string count = std::to_string(options_.scan_count);
  const redis::BlockingCall call{.words = {"SCAN", cursor_, "MATCH", pattern, "COUNT", count},
                                 .key = {}};
  const Clock::time_point give_up = Clock::now() + options_.patience;
  while (!stop.stop_requested()) {
    std::string next;
    std::string refusal;
    keys_.clear();
    const TransportCode code = redis::call_and_wait(
        *client_, {&call, 1}, options_.deadline, [&](std::size_t /*index*/, const Reply& reply) {
          if (reply.kind == Reply::Kind::kError) refusal = reply.text;
          if (reply.elements.size() != 2) return;
          next = reply.elements[0].text;
          for (const Reply& key : reply.elements[1].elements) keys_.emplace_back(key.text);
        });
    if (code == TransportCode::kOk && refusal.empty() && !next.empty()) {
      cursor_ = next;
      return {};
    }
    if (Clock::now() >= give_up) {
      return Status::error(StatusCode::kUnavailable,
                           "SCAN failed: " + (refusal.empty() ? client_->last_error() : refusal),
                           true);
    }
    std::this_thread::sleep_for(kRetryAfter);
  }
  return {};
}

void Sweep::sweep_keys(const std::stop_token& stop) {
  std::vector<redis::BlockingCall> calls;
  calls.reserve(keys_.size());
  for (const std::string& key : keys_) calls.push_back({.words = {"PTTL", key}, .key = key});
  without_expiry_.assign(keys_.size(), false);
  // An expiry that cannot be asked for is left for the next sweep.
  (void)redis::call_and_wait(
      *client_, calls, options_.deadline, [this](std::size_t index, const Reply& reply) {
        without_expiry_[index] = reply.kind == Reply::Kind::kInteger && reply.integer == -1;
      });
  for (std::size_t i = 0; i < keys_.size() && !stop.stop_requested(); ++i) {
    while (records_.full()) {
      records_.wait(Clock::now() + options_.deadline);
      records_.pump();
    }
    ++summary_.records;
    records_.start(keys_[i], without_expiry_[i]);
    records_.pump();
  }
}

void Sweep::count(const RecordCompactor::Done& done) {
  using Outcome = RecordCompactor::Outcome;
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
    records_.pump();
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
  bool first = true;
  while (!stop.stop_requested() && (first || cursor_ != "0")) {
    first = false;
    if (Status status = scan(stop); !status.ok()) return status;
    sweep_keys(stop);
    report(Clock::now());
    keep_pace(stop);
  }
  while (records_.in_flight() > 0) {
    records_.wait(Clock::now() + options_.deadline);
    records_.pump();
  }
  summary_.complete = !first && cursor_ == "0" && !stop.stop_requested();
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
