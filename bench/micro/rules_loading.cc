// How long a process takes until its rules are in force, and what memory that takes.
//
//     rules_loading make FILE RULES       writes a snapshot of so many rules, one per campaign
//     rules_loading snapshot FILE EVERY   starts from it, then reloads it with 1 in EVERY changed
//     rules_loading rows CONNINFO EVERY   starts from the tables, then the same
//
// Rules that change are scattered over the whole set, the worst case for what two sets share.
// Prints one JSON object. bench/micro.py runs all of them, each in a process of its own.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <malloc.h>

#include "postgres/pg_connection.h"
#include "rule_text/snapshot.h"
#include "sources/rule_refresher.h"

namespace {

using Clock = std::chrono::steady_clock;
using fcap::RuleSet;

constexpr double kMegabyte = 1e6;
constexpr int kCampaignsPerAdvertiser = 50;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A line of /proc/self/status, in MB.
double status_megabytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == field + ":" && status >> kilobytes) return kilobytes * 1024 / kMegabyte;
  }
  return 0;
}

void forget_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

double resident_megabytes() {
  ::malloc_trim(0);
  return status_megabytes("VmRSS");
}

fcap::RuleSetSpec spec_of(int rules) {
  fcap::RuleSetSpec spec{.version = 1};
  for (int i = 0; i < rules; ++i) {
    const std::string id = "c" + std::to_string(1'000'000 + i);
    spec.campaigns.push_back(
        {.id = id, .advertiser_id = "a" + std::to_string(i / kCampaignsPerAdvertiser)});
    spec.rules.push_back({.id = "campaign:" + id,
                          .target = id,
                          .limit = 3,
                          .window = {.length = std::chrono::hours{1 + i % 48}}});
  }
  return spec;
}

// A process's rules, and when they arrived.
class Process {
 public:
  explicit Process(fcap::RuleSourceOptions options)
      : refresher_(
            std::move(options), {},
            [this](std::shared_ptr<const RuleSet> set) {
              const std::lock_guard lock(mutex_);
              current_ = std::move(set);
              arrived_.notify_all();
            },
            nullptr) {}

  // False: no rules arrived.
  bool wait_for(std::uint64_t version) {
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, std::chrono::minutes{1},
                             [&] { return current_ && current_->version() >= version; });
  }
  fcap::sources::RuleRefresher* operator->() { return &refresher_; }
  std::uint64_t version() {
    const std::lock_guard lock(mutex_);
    return current_->version();
  }
  std::size_t rules() {
    const std::lock_guard lock(mutex_);
    return current_->rules().size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::shared_ptr<const RuleSet> current_;
  fcap::sources::RuleRefresher refresher_;
};

int fail(const std::string& what) {
  std::cerr << "rules_loading: " << what << '\n';
  return EXIT_FAILURE;
}

int make(const std::string& file, int rules) {
  auto built = RuleSet::build(spec_of(rules), {});
  if (!built.ok()) return fail(built.status().text());
  const auto begin = Clock::now();
  const auto status =
      fcap::rule_text::write_snapshot(file, fcap::rule_text::view_of(*built.value(), {}));
  if (!status.ok()) return fail(status.text());
  const double seconds = seconds_since(begin);
  std::ifstream written(file, std::ios::ate | std::ios::binary);
  std::cout << "{\"write_s\": " << seconds
            << ", \"file_mb\": " << static_cast<double>(written.tellg()) / kMegabyte << "}\n";
  return EXIT_SUCCESS;
}

// Publishes the rules again, with one in `every` changed.
fcap::Status change_snapshot(const std::string& file, std::size_t every) {
  auto snapshot = fcap::rule_text::load_snapshot(file);
  if (!snapshot.ok()) return snapshot.status();
  fcap::RuleSetSpec& spec = snapshot.value().spec;
  ++spec.version;
  for (std::size_t i = 0; i < spec.rules.size(); i += every) ++*spec.rules[i].limit;
  return fcap::rule_text::write_snapshot(file, spec);
}

fcap::Status change_rows(const std::string& conninfo, std::size_t every) {
  const fcap::postgres::PgWait wait{Clock::now() + std::chrono::minutes{1}};
  auto connection = fcap::postgres::PgConnection::connect(conninfo, wait);
  if (!connection.ok()) return connection.status();
  return connection.value()
      .query("UPDATE campaigns SET cap_limit = cap_limit + 1 WHERE substr(id, 2)::int % " +
                 std::to_string(every) + " = 0",
             wait)
      .status();
}

int start(const fcap::RuleSourceOptions& options, std::size_t every) {
  const double before = resident_megabytes();
  const auto begin = Clock::now();
  Process process(options);
  const fcap::Status started = process->start(std::chrono::minutes{1});
  if (!started.ok() || !process.wait_for(1)) return fail(started.text());
  const double seconds = seconds_since(begin);
  const double peak = status_megabytes("VmHWM") - before;
  const double set = resident_megabytes() - before;
  std::cout << "{\"rules\": " << process.rules() << ", \"start_s\": " << seconds
            << ", \"set_mb\": " << set << ", \"start_peak_mb\": " << peak;
  const std::uint64_t version = process.version();
  const fcap::Status changed = options.postgres.empty()
                                   ? change_snapshot(options.snapshot_file, every)
                                   : change_rows(options.postgres, every);
  if (!changed.ok()) return fail(changed.text());
  ::malloc_trim(0);
  forget_peak();
  const auto reload_begin = Clock::now();
  process->poke();
  if (!process.wait_for(version + 1)) return fail("the reload did not arrive");
  std::cout << ", \"reload_s\": " << seconds_since(reload_begin)
            << ", \"reload_peak_mb\": " << status_megabytes("VmHWM") - before << "}\n";
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  fcap::RuleSourceOptions options;
  options.poll_interval = std::chrono::hours{1};
  if (what == "make" && argc == 4) return make(argv[2], std::atoi(argv[3]));
  const int every = argc == 4 ? std::atoi(argv[3]) : 0;
  if (what == "snapshot" && every > 0) {
    options.snapshot_file = argv[2];
    return start(options, static_cast<std::size_t>(every));
  }
  if (what == "rows" && every > 0) {
    options.postgres = argv[2];
    return start(options, static_cast<std::size_t>(every));
  }
  return fail("make FILE RULES, snapshot FILE EVERY or rows CONNINFO EVERY");
}
