#include "path/check_load.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

#include "redis/client.h"

namespace fcap::bench {
namespace {

constexpr std::chrono::seconds kDeadline{2};

}  // namespace

std::vector<std::string> users_in_turn(std::size_t users) {
  std::vector<std::size_t> order(users);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::minstd_rand{});
  std::vector<std::string> ids;
  ids.reserve(users);
  for (const std::size_t user : order) ids.push_back(user_id(user));
  return ids;
}

CheckWorkload usual_workload(std::size_t users) {
  const Population population;
  return {.users = users_in_turn(users),
          .campaigns = campaign_ids(population.campaigns),
          .rules = make_rules(population.campaigns)};
}

std::unique_ptr<Checker> make_checker(const RedisConsole& console, const CheckWorkload& workload,
                                      std::size_t mget_keys_max, std::size_t direct_connections) {
  CheckerOptions options;
  options.redis = console.options();
  options.redis.direct_connections = direct_connections;
  options.redis.mget_keys_max = mget_keys_max;
  options.key_prefix = workload.key_prefix;
  options.deadline = kDeadline;
  options.local.cached_caps_max = 0;  // every check reads
  options.clock = [] { return kBenchNow; };
  auto made = Checker::create(std::move(options));
  if (!made.ok()) throw std::runtime_error(made.status().text());
  std::unique_ptr<Checker> checker = std::move(made).value();
  checker->set_rules(workload.rules);
  const Candidate any{workload.campaigns.front(), {}};
  const auto reads = [&] {
    return checker->check(workload.users.front(), {&any, 1}).reason == Reason::kPassed;
  };
  if (!testing::wait_until(reads)) throw std::runtime_error("the Checker does not reach Redis");
  return checker;
}

std::vector<Candidate> candidates_of(const CheckWorkload& workload) {
  std::vector<Candidate> candidates;
  for (const std::string& id : workload.campaigns) candidates.push_back({id, {}});
  return candidates;
}

CheckLoad::CheckLoad(const RedisConsole& console, const CheckWorkload& workload,
                     std::size_t callers, std::size_t mget_keys_max)
    : workload_(workload),
      callers_(callers),
      candidates_(candidates_of(workload)),
      checker_(make_checker(console, workload, mget_keys_max)) {}

void AsyncChecks::start() {
  // Chosen before the first answer chooses.
  const std::size_t first = turn_;
  turn_ += callers_;
  running_ = callers_;
  for (std::size_t i = 0; i < callers_; ++i) submit(first + i);
}

void AsyncChecks::submit(std::size_t turn) {
  checker_->check_async(user(turn), candidates_, {}, [this](const CheckResult& result) {
    count(result.reason == Reason::kPassed);
    if (should_stop()) {
      running_.fetch_sub(1);
    } else {
      submit(turn_++);
    }
  });
}

void BlockingChecks::start() {
  running_ = callers_;
  for (std::size_t i = 0; i < callers_; ++i) {
    threads_.emplace_back([this, i] { call(i * workload_.users.size() / callers_); });
  }
}

void BlockingChecks::call(std::size_t turn) {
  while (!should_stop()) {
    count(checker_->check(user(turn++), candidates_).reason == Reason::kPassed);
  }
  running_.fetch_sub(1);
}

class LayoutRequests::OneRequest final : public redis::Request {
 public:
  explicit OneRequest(LayoutRequests& load)
      : load_(load), counts_(load.workload_.campaigns.size()) {}

  void prepare() {
    const std::size_t user = load_.turn_++ % load_.workload_.users.size();
    question_ = {load_.workload_.users[user], load_.workload_.campaigns, kBenchNow};
    wire.clear();
    command_count = load_.layout_.ask(wire, question_);
    std::fill(counts_.begin(), counts_.end(), 0);
    readable_ = true;
  }
  void submit() {
    deadline = std::chrono::steady_clock::now() + kDeadline;
    load_.console_.client().submit(*this);
  }
  void on_reply(std::uint32_t index, const redis::Reply& reply) noexcept override {
    readable_ = load_.layout_.read(question_, index, reply, counts_) && readable_;
  }
  void on_done(redis::TransportCode code) noexcept override {
    load_.count(code == redis::TransportCode::kOk && readable_);
    if (load_.should_stop()) {
      load_.running_.fetch_sub(1);
    } else {
      prepare();
      submit();
    }
  }

 private:
  LayoutRequests& load_;
  Question question_;
  std::vector<std::uint32_t> counts_;
  bool readable_ = true;
};

LayoutRequests::LayoutRequests(RedisConsole& console, Layout& layout, const CheckWorkload& workload,
                               std::size_t in_flight)
    : console_(console), layout_(layout), workload_(workload) {
  for (std::size_t i = 0; i < in_flight; ++i) {
    requests_.push_back(std::make_unique<OneRequest>(*this));
  }
}

LayoutRequests::~LayoutRequests() = default;

void LayoutRequests::start() {
  running_ = requests_.size();
  for (auto& request : requests_) request->prepare();
  for (auto& request : requests_) request->submit();
}

}  // namespace fcap::bench
