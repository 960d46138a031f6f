// fcap-chaos-checks URL THREADS DEADLINE_MS RULES: asks one Checker what standard input says, and
// prints what it answers and how late, for ./dev chaos to judge. RULES: PostgreSQL's connection
// string, or the limit of a single rule, impressions of any campaign in a day.
//
//     in:   QUESTION USER CAMPAIGN…
//     out:  QUESTION MICROSECONDS_LATE REASON VERDICT…
//
// A verdict is "allowed" or "capped", with "-stale" and "-incomplete" behind it where that holds.
// As many threads as check sleep until the same deadline, and print "timer MICROSECONDS_LATE": what
// these are late is the machine's.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <future>
#include <iostream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcap/checker.h>
#include <fcap/redis_url.h>

namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

struct Question {
  std::string number;
  std::string user;
  std::vector<std::string> campaigns;
};

std::int64_t late_by(steady_clock::time_point due) {
  const auto late = steady_clock::now() - due;
  return std::max<std::int64_t>(0, std::chrono::duration_cast<microseconds>(late).count());
}

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

// Odd questions go through an I/O thread, even ones over the caller's own connection where there is
// one.
fcap::CheckResult ask(fcap::Checker& checker, const Question& question) {
  const std::vector<fcap::Candidate> candidates(question.campaigns.begin(),
                                                question.campaigns.end());
  if ((question.number.back() - '0') % 2 == 0) return checker.check(question.user, candidates);
  std::promise<fcap::CheckResult> answer;
  checker.check_async(question.user, candidates, {},
                      [&](fcap::CheckResult result) { answer.set_value(std::move(result)); });
  return answer.get_future().get();
}

void print_answer(const Question& question, std::int64_t late, const fcap::CheckResult& result) {
  std::string line =
      question.number + " " + std::to_string(late) + " " + std::string(to_string(result.reason));
  for (const fcap::Verdict& verdict : result.verdicts) {
    line += verdict.allowed ? " allowed" : " capped";
    if (verdict.stale) line += "-stale";
    if (!verdict.complete) line += "-incomplete";
  }
  line += "\n";
  std::fputs(line.c_str(), stdout);
}

void check_all(fcap::Checker& checker, Questions& questions, microseconds deadline) {
  while (const auto question = questions.take()) {
    const auto due = steady_clock::now() + deadline;
    const fcap::CheckResult result = ask(checker, *question);
    print_answer(*question, late_by(due), result);
  }
}

void wait_alone(const std::stop_token& stop, microseconds deadline) {
  while (!stop.stop_requested()) {
    const auto due = steady_clock::now() + deadline;
    std::this_thread::sleep_until(due);
    std::printf("timer %lld\n", static_cast<long long>(late_by(due)));
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
  std::vector<std::jthread> checks;
  for (int i = 0; i < threads; ++i) {
    timers.emplace_back([deadline](const std::stop_token& stop) { wait_alone(stop, deadline); });
    checks.emplace_back([&] { check_all(*checker, questions, deadline); });
  }
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    Question question;
    words >> question.number >> question.user;
    for (std::string campaign; words >> campaign;) question.campaigns.push_back(campaign);
    questions.put(std::move(question));
  }
  questions.end();
}
