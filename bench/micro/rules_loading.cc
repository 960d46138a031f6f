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

#include "harness/measure.h"
#include "postgres/pg_connection.h"
#include "rule_text/snapshot.h"
#include "support/or_throw.h"
#include "support/rule_refresher.h"

namespace fcap::bench {
namespace {

using testing::or_throw;
using Json = nlohmann::ordered_json;

constexpr int kCampaignsPerAdvertiser = 50;

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

RuleSetSpec spec_of(int rules) {
  RuleSetSpec spec{.version = 1};
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
  or_throw(rule_text::write_snapshot(file, rule_text::view_of(*set, {.version = set->version()})));
  return {{"write_s", seconds_since(begin)}};
}

// Publishes the rules again, with one in `every` changed.
void change_snapshot(const std::string& file, std::size_t every) {
  RuleSetSpec spec = or_throw(rule_text::read_snapshot(file));
  ++spec.version;
  for (std::size_t i = 0; i < spec.rules.size(); i += every) ++*spec.rules[i].limit;
  or_throw(rule_text::write_snapshot(file, spec));
}

void change_rows(const std::string& conninfo, std::size_t every) {
  const postgres::PgWait wait{Clock::now() + std::chrono::minutes{1}};
  auto connection = or_throw(postgres::PgConnection::connect(conninfo, wait));
  (void)or_throw(connection.query(
      "UPDATE campaigns SET cap_limit = cap_limit + 1 WHERE substr(id, 2)::int % " +
          std::to_string(every) + " = 0",
      wait));
}

Json start(const RuleSourceOptions& options, std::size_t every) {
  const double before = resident_megabytes();
  const auto begin = Clock::now();
  testing::Running process(options);
  or_throw(process.start());
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
  if (!testing::wait_until([&] { return process.current()->version() > version; })) {
    throw std::runtime_error("the reload did not arrive");
  }
  found["reload_s"] = seconds_since(reload_begin);
  found["reload_peak_mb"] = status_megabytes("VmHWM") - before;
  return found;
}

Json run(const std::string& what, const std::string& from, int number) {
  RuleSourceOptions options;
  options.poll_interval = testing::kNever;
  if (what == "make") return make(from, number);
  (what == "rows" ? options.postgres : options.snapshot_file) = from;
  return start(options, static_cast<std::size_t>(number));
}

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) try {
  if (argc != 4) {
    throw std::runtime_error("make FILE RULES, snapshot FILE EVERY or rows CONNINFO EVERY");
  }
  std::cout << fcap::bench::run(argv[1], argv[2], std::stoi(argv[3])) << '\n';
  return EXIT_SUCCESS;
} catch (const std::exception& error) {
  std::cerr << "rules_loading: " << error.what() << '\n';
  return EXIT_FAILURE;
}
