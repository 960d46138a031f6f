// How long a process takes until its rules are in force, and what memory that takes.
//
//     rules_loading make FILE RULES       writes a snapshot of so many rules, one per campaign
//     rules_loading snapshot FILE EVERY   starts from it, then reloads it with 1 in EVERY changed
//     rules_loading rows CONNINFO EVERY   starts from the tables, then the same
//
// Rules that change are scattered over the whole set, the worst case for what two sets share.
// Prints one JSON object. bench/micro.py runs all of them, each in a process of its own.
#include <cstdlib>
#include <fstream>
#include <iostream>

#include <malloc.h>
#include <nlohmann/json.hpp>

#include "postgres/pg_connection.h"
#include "rule_text/snapshot.h"
#include "support/rule_refresher.h"

namespace {

using Clock = std::chrono::steady_clock;
using fcap::RuleSet;
using Json = nlohmann::ordered_json;

constexpr int kCampaignsPerAdvertiser = 50;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A line of /proc/self/status, in MB.
double status_megabytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == field + ":" && status >> kilobytes) return kilobytes * 1024 / 1e6;
  }
  return 0;
}

double resident_megabytes() {
  ::malloc_trim(0);
  return status_megabytes("VmRSS");
}

void check(const fcap::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.text());
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

Json make(const std::string& file, int rules) {
  const auto set = RuleSet::build(spec_of(rules), {}).value();
  const auto begin = Clock::now();
  check(fcap::rule_text::write_snapshot(file, fcap::rule_text::view_of(*set, {})));
  return {{"write_s", seconds_since(begin)}};
}

// Publishes the rules again, with one in `every` changed.
void change_snapshot(const std::string& file, std::size_t every) {
  auto snapshot = fcap::rule_text::load_snapshot(file);
  check(snapshot.status());
  fcap::RuleSetSpec& spec = snapshot.value().spec;
  ++spec.version;
  for (std::size_t i = 0; i < spec.rules.size(); i += every) ++*spec.rules[i].limit;
  check(fcap::rule_text::write_snapshot(file, spec));
}

void change_rows(const std::string& conninfo, std::size_t every) {
  const fcap::postgres::PgWait wait{Clock::now() + std::chrono::minutes{1}};
  auto connection = fcap::postgres::PgConnection::connect(conninfo, wait);
  check(connection.status());
  check(connection.value()
            .query("UPDATE campaigns SET cap_limit = cap_limit + 1 WHERE substr(id, 2)::int % " +
                       std::to_string(every) + " = 0",
                   wait)
            .status());
}

Json start(const fcap::RuleSourceOptions& options, std::size_t every) {
  const double before = resident_megabytes();
  const auto begin = Clock::now();
  fcap::testing::Running process(options);
  check(process.start());
  Json found = {{"start_s", seconds_since(begin)},
                {"start_peak_mb", status_megabytes("VmHWM") - before},
                {"set_mb", resident_megabytes() - before}};
  const std::uint64_t version = process.current()->version();
  if (options.postgres.empty()) {
    change_snapshot(options.snapshot_file, every);
  } else {
    change_rows(options.postgres, every);
  }
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // forgets the peak
  const auto reload_begin = Clock::now();
  process->poke();
  if (!fcap::testing::wait_until([&] { return process.current()->version() > version; })) {
    throw std::runtime_error("the reload did not arrive");
  }
  found["reload_s"] = seconds_since(reload_begin);
  found["reload_peak_mb"] = status_megabytes("VmHWM") - before;
  return found;
}

Json run(const std::string& what, const std::string& from, int number) {
  fcap::RuleSourceOptions options;
  options.poll_interval = fcap::testing::kNever;
  if (what == "make") return make(from, number);
  (what == "rows" ? options.postgres : options.snapshot_file) = from;
  return start(options, static_cast<std::size_t>(number));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4)
    throw std::runtime_error("make FILE RULES, snapshot FILE EVERY or rows CONNINFO EVERY");
  std::cout << run(argv[1], argv[2], std::stoi(argv[3])) << '\n';
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << "rules_loading: " << error.what() << '\n';
  return EXIT_FAILURE;
}
