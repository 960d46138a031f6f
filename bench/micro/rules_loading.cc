// How long a process takes until its rules are in force, and what memory that takes.
//
//     rules_loading make FILE RULES       writes a snapshot of so many rules, one per campaign
//     rules_loading snapshot FILE         starts from it, then reloads it under the next version
//     rules_loading rows CONNINFO         starts from the tables
//
// Prints one JSON object. bench/micro/run --loading runs all of them, each in a process of its own.
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

#include "config/rule_refresher.h"
#include "config/snapshot.h"

namespace {

using Clock = std::chrono::steady_clock;
using fcap::RuleSet;

constexpr double kMegabyte = 1e6;
constexpr int kCampaignsPerAdvertiser = 50;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A line of /proc/self/status, in MB.
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

/// A process's rules, and when they arrived.
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

  /// False: no rules arrived.
  bool wait_for(std::uint64_t version) {
    std::unique_lock lock(mutex_);
    return arrived_.wait_for(lock, std::chrono::minutes{1},
                             [&] { return current_ && current_->version() >= version; });
  }
  fcap::config::RuleRefresher* operator->() { return &refresher_; }
  std::size_t rules() {
    const std::lock_guard lock(mutex_);
    return current_->rules().size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::shared_ptr<const RuleSet> current_;
  fcap::config::RuleRefresher refresher_;
};

int fail(const std::string& what) {
  std::cerr << "rules_loading: " << what << '\n';
  return EXIT_FAILURE;
}

int make(const std::string& file, int rules) {
  auto built = RuleSet::build(spec_of(rules), {});
  if (!built.ok()) return fail(built.status().text());
  const auto begin = Clock::now();
  const auto status = fcap::config::write_snapshot(file, fcap::config::view_of(*built.value(), {}));
  if (!status.ok()) return fail(status.text());
  const double seconds = seconds_since(begin);
  std::ifstream written(file, std::ios::ate | std::ios::binary);
  std::cout << "{\"write_s\": " << seconds
            << ", \"file_mb\": " << static_cast<double>(written.tellg()) / kMegabyte << "}\n";
  return EXIT_SUCCESS;
}

int start(fcap::RuleSourceOptions options, const std::string& reloaded_file) {
  const double before = resident_megabytes();
  const auto begin = Clock::now();
  Process process(std::move(options));
  const fcap::Status started = process->start(std::chrono::minutes{1});
  if (!started.ok() || !process.wait_for(1)) return fail(started.text());
  const double seconds = seconds_since(begin);
  const double peak = status_megabytes("VmHWM") - before;
  const double set = resident_megabytes() - before;
  std::cout << "{\"rules\": " << process.rules() << ", \"start_s\": " << seconds
            << ", \"set_mb\": " << set << ", \"start_peak_mb\": " << peak;
  if (!reloaded_file.empty()) {
    {
      auto snapshot = fcap::config::load_snapshot(reloaded_file);
      if (!snapshot.ok()) return fail(snapshot.status().text());
      ++snapshot.value().spec.version;
      const auto status = fcap::config::write_snapshot(reloaded_file, snapshot.value().spec);
      if (!status.ok()) return fail(status.text());
    }
    ::malloc_trim(0);
    forget_peak();
    const auto reload_begin = Clock::now();
    process->poke();
    if (!process.wait_for(2)) return fail("the reload did not arrive");
    std::cout << ", \"reload_s\": " << seconds_since(reload_begin)
              << ", \"reload_peak_mb\": " << status_megabytes("VmHWM") - before;
  }
  std::cout << "}\n";
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  fcap::RuleSourceOptions options;
  options.poll_interval = std::chrono::hours{1};
  if (what == "make" && argc == 4) return make(argv[2], std::atoi(argv[3]));
  if (what == "snapshot") {
    options.snapshot_file = argv[2];
    return start(options, argv[2]);
  }
  if (what == "rows") {
    options.postgres = argv[2];
    return start(options, {});
  }
  return fail("make FILE RULES, snapshot FILE or rows CONNINFO");
}
