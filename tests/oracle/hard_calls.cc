// fcap-hard-calls REDIS RULES RETENTION_MS: makes the hard calls that standard input asks for, at
// the instants that it gives, under the rules of a file, and prints what they answer, for
// hard_calls.py to compare. Words are separated by tabs; "-" stands for an empty one.
//
//     in:   NOW_MS reserve|record|shown|release USER CAMPAIGN CREATIVE EVENT LIFE_MS SEGMENT…
//     out:  REASON allowed|refused|unknown TIME EXPIRES RULE
//
//     in:   NOW_MS page USER EVENTS LIFE_MS SEGMENTS CAMPAIGN CREATIVE CAMPAIGN CREATIVE…
//     out:  REASON known|unknown, then for each event PLACE TIME EXPIRES; PLACE: "-", from 0,
//           or "other" where the event id is that of what is not a candidate
//
// EVENTS and SEGMENTS are separated by commas.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcap/checker.h>
#include <fcap/redis_url.h>

#include "rule_text/rule_json.h"

namespace {

using std::chrono::milliseconds;

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

std::shared_ptr<const fcap::RuleSet> rules_of(const char* path, milliseconds retention) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  auto spec = fcap::rule_text::parse_rules_json(text.str());
  if (!spec.ok()) give_up(spec.status().text());
  auto rules = fcap::RuleSet::build(std::move(spec).value(), {.retention = retention});
  if (!rules.ok()) give_up(rules.status().text());
  return rules.value();
}

std::vector<std::string> words_of(const std::string& line, char separator = '\t') {
  std::vector<std::string> words;
  std::istringstream text(line);
  for (std::string word; std::getline(text, word, separator);) {
    words.push_back(word == "-" ? "" : word);
  }
  return words;
}

fcap::HardResult call(fcap::Checker& checker, const std::vector<std::string>& words) {
  const std::vector<std::string_view> segments(words.begin() + 7, words.end());
  const fcap::Candidate candidate{.campaign = words[3], .creative = words[4]};
  const fcap::Impression impression{.subject = words[2],
                                    .candidate = candidate,
                                    .event_id = words[5],
                                    .at = fcap::Instant(milliseconds(std::stoll(words[0])))};
  const fcap::HardOptions options{.segments = segments,
                                  .life = milliseconds(std::stoll(words[6])),
                                  .shown = words[1] == "shown"};
  if (words[1] == "reserve") return checker.hard({fcap::HardCall::kReserve, impression}, options);
  if (words[1] == "record" || options.shown)
    return checker.hard({fcap::HardCall::kRecord, impression}, options);
  if (words[1] == "release") return checker.hard({fcap::HardCall::kRelease, impression}, options);
  give_up("no such call: " + words[1]);
}

fcap::PagePicks page(fcap::Checker& checker, const std::vector<std::string>& words) {
  const std::vector<std::string> events = words_of(words[3], ',');
  const std::vector<std::string> segments = words_of(words[5], ',');
  const std::vector<std::string_view> event_views(events.begin(), events.end());
  const std::vector<std::string_view> segment_views(segments.begin(), segments.end());
  std::vector<fcap::Candidate> ranked;
  for (std::size_t i = 6; i + 1 < words.size(); i += 2) {
    ranked.push_back({.campaign = words[i], .creative = words[i + 1]});
  }
  const fcap::PageOptions options{.now = fcap::Instant(milliseconds(std::stoll(words[0]))),
                                  .segments = segment_views,
                                  .life = milliseconds(std::stoll(words[4]))};
  return checker.pick({fcap::Promise::kReserved, words[2], ranked, event_views}, options);
}

// Soon after the start, the Checker does not know yet what the updater allows.
template <typename Call>
auto once_allowed(Call make) {
  auto result = make();
  for (int tries = 0; tries < 1000 && (result.reason == fcap::Reason::kUnavailable ||
                                       result.reason == fcap::Reason::kClock);
       ++tries) {
    std::this_thread::sleep_for(milliseconds(5));
    result = make();
  }
  return result;
}

std::string in_ms(const std::optional<fcap::Instant>& at) {
  return at ? std::to_string(at->time_since_epoch().count()) : "0";
}

void answer(fcap::Checker& checker, const std::vector<std::string>& words) {
  if (words[1] == "page") {
    const auto picks = once_allowed([&] { return page(checker, words); });
    std::string line(to_string(picks.reason));
    line += picks.unknown ? "\tunknown" : "\tknown";
    for (const fcap::PagePicks::Pick& pick : picks.picks) {
      const std::string none = pick.held_by_other ? "other" : "-";
      line += "\t" + (pick.candidate ? std::to_string(*pick.candidate) : none);
      line += "\t" + in_ms(pick.time) + "\t" + in_ms(pick.expires);
    }
    std::puts(line.c_str());
    return;
  }
  const auto result = once_allowed([&] { return call(checker, words); });
  const char* const outcome = result.unknown ? "unknown" : result.allowed ? "allowed" : "refused";
  const std::string rule(result.verdict.rule_id);
  std::printf("%s\t%s\t%s\t%s\t%s\n", std::string(to_string(result.reason)).c_str(), outcome,
              in_ms(result.time).c_str(), in_ms(result.expires).c_str(), rule.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) give_up("usage: fcap-hard-calls REDIS RULES RETENTION_MS");
  fcap::CheckerOptions options;
  auto redis = fcap::parse_redis_url(argv[1], std::move(options.redis));
  if (!redis.ok()) give_up(redis.status().text());
  options.redis = std::move(redis).value();
  options.retention = milliseconds(std::atoll(argv[3]));
  options.deadline = std::chrono::seconds(60);
  auto made = fcap::Checker::create(std::move(options));
  if (!made.ok()) give_up(made.status().text());
  fcap::Checker& checker = *made.value();
  checker.set_rules(rules_of(argv[2], milliseconds(std::atoll(argv[3]))));
  if (!checker.wait_ready(std::chrono::seconds(30))) give_up("not ready");
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.size() < 7) give_up("too few words: " + line);
    answer(checker, words);
  }
}
