// fcap-chaos-checks URL THREADS DEADLINE_MS RULES: makes the calls of one Checker that standard
// input asks for, and prints what they answer and how late, for ./dev chaos to judge. RULES:
// PostgreSQL's connection string, or the limit of a single rule, impressions of any campaign in a
// day.
//
//     in:   NUMBER check USER CAMPAIGN…
//     out:  NUMBER MICROSECONDS_LATE REASON VERDICT…
//
//     in:   NUMBER reserve USER CAMPAIGN EVENT LIFE_MS          (0: as long as is allowed)
//           NUMBER record|release|note|take_back USER CAMPAIGN EVENT
//     out:  NUMBER MICROSECONDS_LATE REASON allowed|refused|unknown TIME EXPIRES
//
//     in:   NUMBER page USER EVENT EVENT CAMPAIGN…
//     out:  NUMBER MICROSECONDS_LATE REASON known|unknown (CAMPAIGN|- TIME EXPIRES) twice
//
// A verdict is "allowed" or "capped", with "-stale" and "-incomplete" behind it where that holds.
// Times are in milliseconds since 1970; 0 means that there is none. "note" makes a check and, if
// the candidate passes, shares a note that it was shown.
//
// As many threads as make calls sleep until the same deadline, and print "timer MICROSECONDS_LATE":
// what these are late is the machine's.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcap/checker.h>
#include <fcap/redis_url.h>

#include "calls.h"

namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

using fcap::chaos::Question;

// Questions that wait for a thread. None is kept waiting on purpose: a check begins when one takes
// its question.
class Questions {
 public:
  void put(Question question) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(question));
    }
    changed_.notify_one();
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }

  // Empty: there are no more.
  std::optional<Question> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return std::nullopt;
    Question question = std::move(waiting_.front());
    waiting_.pop_front();
    return question;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Question> waiting_;
  bool ended_ = false;
};

std::shared_ptr<const fcap::RuleSet> single_rule(std::uint32_t limit) {
  fcap::RuleSetSpec spec;
  spec.version = 1;
  fcap::Rule rule;
  rule.id = "daily";
  rule.target = "*";
  rule.limit = limit;
  rule.window.length = std::chrono::hours{24};
  spec.rules.push_back(std::move(rule));
  auto rules = fcap::RuleSet::build(std::move(spec), {});
  return rules.ok() ? rules.value() : nullptr;
}

std::unique_ptr<fcap::Checker> make_checker(const char* url, microseconds deadline,
                                            const std::string& rules) {
  fcap::CheckerOptions options;
  auto redis = fcap::parse_redis_url(url, std::move(options.redis));
  if (!redis.ok()) {
    std::fprintf(stderr, "%s\n", redis.status().text().c_str());
    return nullptr;
  }
  options.redis = std::move(redis).value();
  options.deadline = deadline;
  const bool in_tables = rules.find('=') != std::string::npos;
  if (in_tables) {
    options.rules = {.postgres = rules, .poll_interval = std::chrono::seconds{1}, .listen = true};
  }
  options.log = [](fcap::LogLevel, std::string_view text) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
  };
  auto made = fcap::Checker::create(std::move(options));
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", made.status().text().c_str());
    return nullptr;
  }
  if (!in_tables) {
    made.value()->set_rules(single_rule(static_cast<std::uint32_t>(std::stoul(rules))));
  } else if (!made.value()->wait_ready(std::chrono::seconds{60})) {
    std::fprintf(stderr, "not ready after a minute\n");
    return nullptr;
  }
  return std::move(made).value();
}

void answer_all(fcap::Checker& checker, Questions& questions, microseconds deadline) {
  while (const auto question = questions.take()) {
    std::puts(answer(checker, *question, deadline).c_str());
  }
}

void wait_alone(const std::stop_token& stop, microseconds deadline) {
  while (!stop.stop_requested()) {
    const auto due = steady_clock::now() + deadline;
    std::this_thread::sleep_until(due);
    std::printf("timer %lld\n", static_cast<long long>(fcap::chaos::microseconds_since(due)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: fcap-chaos-checks URL THREADS DEADLINE_MS RULES\n");
    return 2;
  }
  const int threads = std::atoi(argv[2]);
  const microseconds deadline{1000 * std::atoi(argv[3])};
  const auto checker = make_checker(argv[1], deadline, argv[4]);
  if (checker == nullptr) return 1;
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  Questions questions;
  std::vector<std::jthread> timers;
  std::vector<std::jthread> callers;
  for (int i = 0; i < threads; ++i) {
    timers.emplace_back([deadline](const std::stop_token& stop) { wait_alone(stop, deadline); });
    callers.emplace_back([&] { answer_all(*checker, questions, deadline); });
  }
  for (std::string line; std::getline(std::cin, line);) {
    questions.put(fcap::chaos::read_question(line));
  }
  questions.end();
}
