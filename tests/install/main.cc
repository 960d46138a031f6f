// What an outside project does first with an installed libfcap: makes a Checker without any server,
// and one whose Redis does not answer. Prints what is wrong and exits with 1, or exits with 0.

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <fcap/checker.h>
#include <fcap/version.h>

namespace {

std::shared_ptr<const fcap::RuleSet> rules() {
  fcap::Rule never;
  never.id = "never-c1";
  never.target = "c1";
  never.limit = 0;
  never.window.length = std::chrono::hours{24};
  fcap::RuleSetSpec spec;
  spec.version = 1;
  spec.rules.push_back(never);
  fcap::Rule daily = never;
  daily.id = "daily-c2";
  daily.target = "c2";
  daily.limit = 3;
  spec.rules.push_back(daily);
  auto built = fcap::RuleSet::build(std::move(spec), {});
  if (!built.ok()) {
    std::fprintf(stderr, "rules: %s\n", built.status().text().c_str());
    return nullptr;
  }
  return built.value();
}

// Whether a Checker with these options lets c1 and c2 pass.
bool judges(fcap::CheckerOptions options, bool c1, bool c2, fcap::Reason reason) {
  options.deadline = std::chrono::seconds{30};  // the usual 5 ms pass on a busy machine
  auto made = fcap::Checker::create(std::move(options));
  if (!made.ok()) {
    std::fprintf(stderr, "create: %s\n", made.status().text().c_str());
    return false;
  }
  fcap::Checker& checker = *made.value();
  checker.set_rules(rules());
  const fcap::Candidate candidates[] = {{"c1"}, {"c2", "creative"}};
  const fcap::CheckResult result = checker.check("u123", candidates);
  if (result.verdicts.size() == 2 && result.verdicts[0].allowed == c1 &&
      result.verdicts[1].allowed == c2 && result.reason == reason) {
    return true;
  }
  const std::string word(fcap::to_string(result.reason));
  std::fprintf(stderr, "unexpected verdicts, reason %s\n", word.c_str());
  return false;
}

}  // namespace

int main() {
  fcap::CheckerOptions in_memory;
  in_memory.store = fcap::make_memory_store();
  if (!judges(std::move(in_memory), false, true, fcap::Reason::kPassed)) return 1;

  // Port 9 (discard): nobody listens. What needs the history is allowed, with the reason.
  fcap::CheckerOptions nobody;
  nobody.redis.addresses = {"127.0.0.1:9"};
  if (!judges(std::move(nobody), false, true, fcap::Reason::kUnavailable)) return 1;

  std::printf("fcap %s works\n", FCAP_VERSION);
  return 0;
}
