#pragma once

#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <sys/resource.h>

#include "harness/redis_console.h"
#include "path/check_load.h"
#include "peers/layout.h"
#include "support/process.h"

namespace fcap::bench {

/// A layout's requests: a number of them always in flight over one connection.
class LayoutRequests final : public Load {
 public:
  LayoutRequests(RedisConsole& console, Layout& layout, const CheckWorkload& workload,
                 std::size_t in_flight)
      : console_(console), layout_(layout), workload_(workload) {
    while (requests_.size() < in_flight) requests_.push_back(std::make_unique<OneRequest>(*this));
  }

 private:
  class OneRequest final : public redis::Request {
   public:
    explicit OneRequest(LayoutRequests& load) : load_(load) {}

    void prepare() {
      question_ = {load_.workload_.user(load_.turn_++), load_.workload_.campaigns, kBenchNow};
      wire.clear();
      command_count = load_.layout_.ask(wire, question_);
      counts_.assign(question_.campaigns.size(), 0);
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

  void start() override {
    running_ = requests_.size();
    for (auto& request : requests_) request->prepare();
    for (auto& request : requests_) request->submit();
  }

  RedisConsole& console_;
  Layout& layout_;  // the I/O thread's, once answers come, like turn_
  const CheckWorkload& workload_;
  std::size_t turn_ = 0;
  std::vector<std::unique_ptr<OneRequest>> requests_;
};

/// redis-benchmark with one connection: what Redis does when its client does nothing else. Its CPU
/// time is that of the child process.
class RedisBenchmark final : public Requests {
 public:
  /// `command`: its words; "__rand_int__" becomes a random number below `random_below`, 12 digits.
  /// `keys`: how many it names, of which 64 are in flight; what is measured is per key.
  RedisBenchmark(const RedisOptions& redis, const std::vector<std::string>& command,
                 std::size_t random_below, std::size_t keys = 1)
      : keys_(static_cast<double>(keys)), command_(command) {
    constexpr std::size_t kKeysInFlight = 64;
    std::istringstream words(fmt::format(
        "redis-benchmark --csv -u redis://{}/{} -c 1 -P {} -r {} -n", redis.addresses.front(),
        redis.database, std::max<std::size_t>(1, kKeysInFlight / keys), random_below));
    line_.assign(std::istream_iterator<std::string>(words), {});
  }

  /// About that long, judged by the last run; the first one is preceded by a short trial.
  Numbers measure(int redis_pid, double seconds) override {
    constexpr std::size_t kTrialRequests = 5'000;
    if (expected_per_second_ == 0) (void)run(redis_pid, kTrialRequests);
    return run(redis_pid, static_cast<std::size_t>(expected_per_second_ * seconds) + 1);
  }

 private:
  Numbers run(int redis_pid, std::size_t requests) {
    std::vector<std::string> line = line_;
    line.push_back(std::to_string(requests));
    line.insert(line.end(), command_.begin(), command_.end());
    const double count = keys_ * static_cast<double>(requests);
    const Meter meter({{"redis_cpu_us", redis_pid}});
    const double client_before = children_cpu_us();
    expected_per_second_ = requests_per_second_of(testing::run(line));
    Numbers found = meter.per("requests", count);
    // Its own count, without its start and its end.
    found["requests_per_second"] = keys_ * expected_per_second_;
    found["client_cpu_us"] = (children_cpu_us() - client_before) / count;
    found["failed"] = 0;
    return found;
  }

  static double children_cpu_us() {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return 1e6 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }

  // The last line is "command","requests/s",…; the command may hold commas.
  static double requests_per_second_of(const testing::Finished& finished) {
    const std::string& csv = finished.output;
    const std::size_t line = csv.find_last_of('\n', csv.size() < 2 ? 0 : csv.size() - 2);
    const std::size_t comma = csv.find("\",\"", line == std::string::npos ? 0 : line);
    if (comma == std::string::npos) {
      throw std::runtime_error("redis-benchmark said: " + csv + finished.errors);
    }
    return std::stod(csv.substr(comma + 3));
  }

  const double keys_;
  const std::vector<std::string> command_;
  std::vector<std::string> line_;  // up to the number of requests
  double expected_per_second_ = 0;
};

}  // namespace fcap::bench
