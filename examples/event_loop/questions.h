#pragma once

#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fcap/checker.h>

/// One line of input: a user, then the campaigns to ask about.
struct InputQuestion {
  std::string user;
  std::vector<std::string> campaigns;

  static InputQuestion parse(const std::string& line) {
    std::istringstream words(line);
    InputQuestion question;
    words >> question.user;
    for (std::string campaign; words >> campaign;) question.campaigns.push_back(campaign);
    return question;
  }

  /// Views into this question.
  [[nodiscard]] std::vector<fcap::Candidate> candidates() const {
    std::vector<fcap::Candidate> views;
    for (const std::string& campaign : campaigns) views.push_back({campaign});
    return views;
  }
};

/// One line of output: "u123: c1 allowed, c2 capped (passed)".
inline std::string answer_line(const InputQuestion& question, const fcap::CheckResult& result) {
  std::string line = question.user + ":";
  for (std::size_t i = 0; i < result.verdicts.size(); ++i) {
    line += (i == 0 ? " " : ", ") + question.campaigns[i] +
            (result.verdicts[i].allowed ? " allowed" : " capped");
  }
  return line + " (" + std::string(fcap::to_string(result.reason)) + ")\n";
}

/// A Checker over the Redis server at `address`, or over an empty store in memory where there is
/// none, with one rule: campaign "never" is shown to nobody, and every other at most three times in
/// 24 hours. Null: the error was printed.
inline std::unique_ptr<fcap::Checker> make_checker(const char* address) {
  fcap::CheckerOptions options;
  if (address != nullptr) {
    options.redis.addresses = {address};
  } else {
    options.store = fcap::make_memory_store();
  }
  auto made = fcap::Checker::create(std::move(options));
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.status().text().c_str());
    return nullptr;
  }
  fcap::RuleSetSpec spec;
  spec.version = 1;
  for (const auto& [id, target, limit] : {std::tuple{"never", "never", 0U}, {"daily", "*", 3U}}) {
    fcap::Rule rule;
    rule.id = id;
    rule.target = target;
    rule.limit = limit;
    rule.window.length = std::chrono::hours{24};
    spec.rules.push_back(rule);
  }
  auto rules = fcap::RuleSet::build(std::move(spec), {});
  if (!rules.ok()) {
    std::fprintf(stderr, "%s\n", rules.status().text().c_str());
    return nullptr;
  }
  made.value()->set_rules(rules.value());
  return std::move(made.value());
}
