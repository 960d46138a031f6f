// bench_callers: threads that each wait for one answer at a time, as in a server with a thread per
// request: check() beside a hiredis connection per thread that GETs the same records. 10 candidates
// of two rules each. What is compared takes turns; medians of the rounds.
//
//   apart     Redis and the callers on a core of their own each
//   together  on one core
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <hiredis/hiredis.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/resource.h>

#include "ledger/user_key.h"
#include "path/check_load.h"

namespace fcap::bench {
namespace {

using Clock = std::chrono::steady_clock;
// Asks about one user and waits; false: no answer.
using Ask = std::function<bool(const std::string& user)>;

struct Flags {
  std::string redis = "127.0.0.1:6379";
  std::string json;
  std::size_t users = 100'000;
  double seconds = 2;
  std::size_t rounds = 5;
  std::vector<std::size_t> callers = {1, 64};
};

// A blocking connection of hiredis.
class BlockingGet {
 public:
  explicit BlockingGet(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    context_.reset(
        redisConnect(address.substr(0, colon).c_str(), std::stoi(address.substr(colon + 1))));
    if (context_ == nullptr || context_->err != 0)
      throw std::runtime_error("hiredis: no connection");
  }

  [[nodiscard]] bool get(const std::string& key) {
    const Reply reply = command({"GET", key});
    return reply != nullptr && reply->type == REDIS_REPLY_STRING;
  }

  // A number in INFO.
  [[nodiscard]] double info(const std::string& section, const std::string& field) {
    const Reply reply = command({"INFO", section});
    if (reply == nullptr) throw std::runtime_error("hiredis: no answer");
    const std::string text(reply->str, reply->len);
    const std::size_t at = text.find(field + ":");
    return at == std::string::npos ? 0 : std::stod(text.substr(at + field.size() + 1));
  }

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  Reply command(const std::vector<std::string>& words) {
    std::vector<const char*> starts;
    std::vector<std::size_t> lengths;
    for (const std::string& word : words) {
      starts.push_back(word.data());
      lengths.push_back(word.size());
    }
    return Reply(static_cast<redisReply*>(redisCommandArgv(
        context_.get(), static_cast<int>(words.size()), starts.data(), lengths.data())));
  }

  std::unique_ptr<redisContext, Free> context_;
};

void pin_tasks(int pid, unsigned core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    sched_setaffinity(std::stoi(task.path().filename()), sizeof(cores), &cores);
  }
}

double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

using Numbers = std::map<std::string, double>;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Callers {
 public:
  explicit Callers(const Flags& flags)
      : flags_(flags),
        console_(flags.redis),
        workload_(usual_workload(flags.users)),
        candidates_(candidates_of(workload_)),
        server_(flags.redis),
        redis_pid_(static_cast<int>(server_.info("server", "process_id"))) {
    populate_compacted(console_, {.users = flags.users});
    through_io_thread_ = make_checker(console_, workload_, usual_mget_keys_max(), 0);
    direct_ = make_checker(console_, workload_, usual_mget_keys_max());
  }

  int run() {
    const unsigned cores = std::thread::hardware_concurrency();
    if (cores > 1) compare("apart", 1, 0);
    compare("together", 0, 0);
    if (!flags_.json.empty()) std::ofstream(flags_.json) << json_.dump(1) << '\n';
    return 0;
  }

 private:
  void compare(const std::string& where, unsigned own_core, unsigned redis_core) {
    pin_tasks(getpid(), own_core);
    pin_tasks(redis_pid_, redis_core);
    for (const std::size_t callers : flags_.callers) {
      std::map<std::string, std::map<std::string, std::vector<double>>> all;
      for (std::size_t round = 0; round < flags_.rounds; ++round) {
        for (const std::string who : {"hiredis", "check", "check_by_io_thread"}) {
          for (const auto& [key, value] : measure(who, callers)) all[who][key].push_back(value);
        }
      }
      for (const auto& [who, numbers] : all) {
        const std::string name = where + "_" + std::to_string(callers) + "_" + who;
        std::printf("%-40s", name.c_str());
        for (const auto& [key, values] : numbers) {
          json_[name][key] = median(values);
          std::printf("  %s %10.2f (%.2fx)", key.c_str(), median(values),
                      median(values) / median(all["hiredis"][key]));
        }
        std::printf("\n");
        std::fflush(stdout);
      }
    }
  }

  Ask make_ask(const std::string& who) {
    if (who != "hiredis") {
      Checker& checker = who == "check" ? *direct_ : *through_io_thread_;
      return [this, &checker](const std::string& user) {
        return checker.check(user, candidates_).reason == Reason::kPassed;
      };
    }
    auto connection = std::make_shared<BlockingGet>(flags_.redis);
    return [this, connection](const std::string& user) {
      std::string key;
      ledger::user_key(workload_.key_prefix, user, key);
      return connection->get(key);
    };
  }

  Numbers measure(const std::string& who, std::size_t callers) {
    std::atomic<bool> stop{false};
    std::atomic<bool> counting{false};
    std::vector<std::vector<double>> us(callers);
    std::vector<std::jthread> threads;
    std::atomic<std::uint64_t> failed{0};
    for (std::size_t i = 0; i < callers; ++i) {
      us[i].reserve(1'000'000);
      threads.emplace_back([&, i, ask = make_ask(who)] {
        for (std::size_t turn = i * flags_.users / callers; !stop; ++turn) {
          const auto begin = Clock::now();
          if (!ask(workload_.users[turn % flags_.users])) ++failed;
          if (!counting) continue;
          us[i].push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(flags_.seconds / 10));
    const double own_before = own_cpu_seconds();
    const double redis_before = redis_cpu_seconds();
    const auto begin = Clock::now();
    counting = true;
    std::this_thread::sleep_for(std::chrono::duration<double>(flags_.seconds));
    counting = false;
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    const double own = own_cpu_seconds() - own_before;
    const double redis = redis_cpu_seconds() - redis_before;
    stop = true;
    threads.clear();
    if (failed != 0) throw std::runtime_error(who + ": requests failed");
    std::vector<double> together;
    for (const auto& part : us) together.insert(together.end(), part.begin(), part.end());
    const auto count = static_cast<double>(together.size());
    return {{"per_second", count / took},
            {"p50_us", median(together)},
            {"cpu_us", (own + redis) / count * 1e6},
            {"own_cpu_us", own / count * 1e6}};
  }

  double redis_cpu_seconds() {
    return server_.info("cpu", "used_cpu_user") + server_.info("cpu", "used_cpu_sys");
  }

  Flags flags_;
  RedisConsole console_;
  CheckWorkload workload_;
  std::vector<Candidate> candidates_;
  BlockingGet server_;
  int redis_pid_;
  std::unique_ptr<Checker> through_io_thread_;
  std::unique_ptr<Checker> direct_;
  nlohmann::ordered_json json_;
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::Flags flags;
  CLI::App app("Threads that wait, beside hiredis.", "bench_callers");
  app.add_option("--redis", flags.redis, "An empty Redis on this machine, host:port");
  app.add_option("--json", flags.json, "Where the result goes");
  app.add_option("--users", flags.users, "Users in Redis");
  app.add_option("--seconds", flags.seconds, "Of each measurement");
  app.add_option("--callers", flags.callers, "How many threads");
  app.add_option("--rounds", flags.rounds, "Turns that each of those compared takes");
  CLI11_PARSE(app, argc, argv);
  try {
    return fcap::bench::Callers(flags).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_callers: %s\n", error.what());
    return 1;
  }
}
