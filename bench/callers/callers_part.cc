// bench_callers: threads that each wait for one answer at a time, as in a server with a thread per
// request: check() beside a hiredis connection per thread that GETs the same records. 10 candidates
// of two rules each.
//
//   apart     Redis and the callers on a core of their own each
//   together  all on one core
#include <hiredis/hiredis.h>

#include "harness/part.h"
#include "ledger/user_key.h"
#include "path/check_load.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kManyCallers = 64;

// GETs a user's record over a connection of its own.
Ask blocking_get(int port, const CheckWorkload& workload) {
  const std::shared_ptr<redisContext> connection(redisConnect("127.0.0.1", port), redisFree);
  if (connection == nullptr || connection->err != 0) {
    throw std::runtime_error("hiredis does not reach Redis");
  }
  return [connection, prefix = workload.key_prefix](const std::string& user) {
    std::string key;
    ledger::user_key(prefix, user, key);
    const char* words[] = {"GET", key.data()};
    const std::size_t lengths[] = {3, key.size()};
    const std::unique_ptr<redisReply, void (*)(void*)> reply(
        static_cast<redisReply*>(redisCommandArgv(connection.get(), 2, words, lengths)),
        freeReplyObject);
    return reply != nullptr && reply->type == REDIS_REPLY_STRING;
  };
}

class CallersPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    populate_compacted(console_, {.users = flags_.users});
    result_.table("blocking", "Blocking callers",
                  fmt::format("A thread each. hiredis: a connection each, GET of the record, which "
                              "is not evaluated. Medians of {} turns.",
                              flags_.rounds),
                  throughput_columns({{"cpu_us", "both, CPU µs", 2}, kP50}));
    if (std::thread::hardware_concurrency() > 1) {
      compare("apart", 1);
      compare("apart", kManyCallers);
    }
    pin(getpid(), kRedisCore);
    compare("together", 1);
    compare("together", kManyCallers);

    const auto number = [this](const char* key, const std::string& name, const char* column) {
      ratio(key, name + "_check", name + "_hiredis", column);
    };
    number("caller_p50_vs_hiredis", "apart_1", "p50_us");
    number("caller_p50_vs_hiredis_on_one_core", "together_1", "p50_us");
    number("callers_64_vs_hiredis", "apart_64", "requests_per_second");
    number("callers_64_cpu_vs_hiredis", "apart_64", "cpu_us");
  }

 private:
  void compare(const std::string& where, std::size_t count) {
    const std::string name = fmt::format("{}_{}", where, count);
    const std::string title = fmt::format("{} caller{} {}", count, count == 1 ? "" : "s", where);
    const auto checker = make_checker(console_.options(), workload_);
    std::vector<Ask> gets;
    for (std::size_t i = 0; i < count; ++i) {
      gets.push_back(blocking_get(redis_.port(), workload_));
    }
    const std::vector<Ask> checks(count, blocking_check(*checker, workload_));
    const auto callers = [&](const std::vector<Ask>& asks) {
      return measuring(std::make_shared<BlockingCallers>(workload_, asks));
    };
    take_turns({{"blocking", name + "_check", title + ", check()", callers(checks)},
                {"blocking", name + "_hiredis", title + ", hiredis", callers(gets)}});
  }

  const CheckWorkload workload_ = usual_workload(flags_.users);
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  return fcap::bench::run_part<fcap::bench::CallersPart>(argc, argv);
}
