// The part `callers`: threads that each wait for one answer at a time, as in a server with a thread
// per request: check() beside a hiredis connection per thread that GETs the same records.
//
//   apart     Redis and the callers on a core of their own each
//   together  all on one core
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>

#include <hiredis/hiredis.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "harness/part.h"
#include "path/check_load.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kManyCallers = 64;

std::shared_ptr<redisContext> connect(int port) {
  std::shared_ptr<redisContext> connection(redisConnect("127.0.0.1", port), redisFree);
  if (connection == nullptr || connection->err != 0) {
    throw std::runtime_error("hiredis does not reach Redis");
  }
  return connection;
}

// GETs a user's record over a connection of its own.
Ask blocking_get(int port, const CheckWorkload& workload) {
  return [connection = connect(port), prefix = workload.key_prefix](const std::string& user) {
    const std::string key = key_of(user, prefix);
    const char* words[] = {"GET", key.data()};
    const std::size_t lengths[] = {3, key.size()};
    const std::unique_ptr<redisReply, void (*)(void*)> reply(
        static_cast<redisReply*>(redisCommandArgv(connection.get(), 2, words, lengths)),
        freeReplyObject);
    return reply != nullptr && reply->type == REDIS_REPLY_STRING;
  };
}

// The bound of callers who hand their requests over: the row `ready` of ../README.md.
class HandOver {
 public:
  explicit HandOver(int port) : connection_(connect(port)) {
    sem_init(&work_, 0, 0);
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~HandOver() {
    thread_.request_stop();
    sem_post(&work_);
  }

  static Ask caller(const std::shared_ptr<HandOver>& shared, const CheckWorkload& workload) {
    const std::string& any = workload.users.front();  // all ids are equally long
    const std::string key = key_of(any, workload.key_prefix);
    const auto me = std::make_shared<Caller>();
    me->command = fmt::format("*2\r\n$3\r\nGET\r\n${}\r\n{}\r\n", key.size(), key);
    return [shared, me, at = me->command.find(any)](const std::string& user) {
      user.copy(&me->command[at], user.size());
      me->next = shared->waiting_;
      while (!shared->waiting_.compare_exchange_weak(me->next, me.get())) continue;
      if (me->next == nullptr) sem_post(&shared->work_);
      return sem_wait(&me->answered) == 0;
    };
  }

 private:
  struct Caller {
    Caller() { sem_init(&answered, 0, 0); }
    std::string command;
    sem_t answered;  // std::binary_semaphore yields before it sleeps
    Caller* next = nullptr;
  };

  void run(const std::stop_token& stop) {
    for (std::string out; !stop.stop_requested(); out.clear()) {
      Caller* caller = waiting_.exchange(nullptr);
      if (caller == nullptr && asked_.empty()) sem_wait(&work_);
      for (; caller != nullptr; caller = caller->next) {
        out += caller->command;
        asked_.push_back(caller);
      }
      if (!out.empty()) ::send(connection_->fd, out.data(), out.size(), MSG_NOSIGNAL);
      if (!asked_.empty()) receive();
    }
  }

  void receive() {
    const ssize_t got = ::recv(connection_->fd, bytes_.data(), bytes_.size(), 0);
    if (got <= 0) throw std::runtime_error("Redis has closed the connection");
    in_.append(bytes_.data(), static_cast<std::size_t>(got));
    std::size_t at = 0;
    for (auto line = in_.find('\n'); line != std::string::npos; line = in_.find('\n', at)) {
      if (in_[at] != '$' || in_[at + 1] == '-') throw std::runtime_error("a record is missing");
      const std::size_t end = line + 3 + std::strtoul(&in_[at + 1], nullptr, 10);
      if (in_.size() < end) break;
      at = end;
      sem_post(&asked_.front()->answered);
      asked_.pop_front();
    }
    in_.erase(0, at);
  }

  const std::shared_ptr<redisContext> connection_;
  std::atomic<Caller*> waiting_{nullptr};
  sem_t work_;
  std::deque<Caller*> asked_;
  std::array<char, 65'536> bytes_;
  std::string in_;
  std::jthread thread_;
};

class CallersPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    populate_compacted(console_, {.users = flags_.users});
    result_.table("blocking", "Blocking callers",
                  fmt::format("A thread each. hiredis: a connection each, GET of the record, which "
                              "is not evaluated. ready GETs: the bound of callers that hand "
                              "requests over; see bench/README.md. Medians of {} turns.",
                              flags_.rounds),
                  throughput_columns({{"cpu_us", "both, CPU µs", 2}, kP50}));
    if (std::thread::hardware_concurrency() > 1) {
      measure("apart", 1);
      measure("apart", kManyCallers);
    }
    pin(getpid(), kRedisCore);
    measure("together", 1);
    measure("together", kManyCallers);

    const auto number = [this](const char* key, const std::string& name, const char* column) {
      ratio(key, name + "_check", name + "_hiredis", column);
    };
    number("caller_p50_vs_hiredis", "apart_1", "p50_us");
    number("caller_p50_vs_hiredis_on_one_core", "together_1", "p50_us");
    number("callers_64_vs_hiredis", "apart_64", "requests_per_second");
    number("callers_64_cpu_vs_hiredis", "apart_64", "cpu_us");
    ratio("ready_64_vs_hiredis", "apart_64_ready", "apart_64_hiredis", "requests_per_second");
    ratio("ready_64_cpu_vs_hiredis", "apart_64_ready", "apart_64_hiredis", "cpu_us");
  }

 private:
  void measure(const std::string& where, std::size_t count) {
    const std::string name = fmt::format("{}_{}", where, count);
    const std::string title = fmt::format("{} caller{} {}", count, count == 1 ? "" : "s", where);
    const auto checker = make_checker(console_.options(), workload_);
    const auto add = [&](const char* suffix, const char* how, auto make_caller) {
      std::vector<Ask> callers;
      for (std::size_t i = 0; i < count; ++i) callers.push_back(make_caller());
      compare<BlockingCallers>(name + suffix, title + how, workload_, callers);
    };
    add("_check", ", check()", [&] { return blocking_check(*checker, workload_); });
    add("_hiredis", ", hiredis", [&] { return blocking_get(redis_->port(), workload_); });
    if (count > 1) {
      const auto shared = std::make_shared<HandOver>(redis_->port());
      add("_ready", ", ready GETs", [&] { return HandOver::caller(shared, workload_); });
    }
    take_turns();
  }

  const CheckWorkload workload_ = usual_workload(flags_.users);
};

const Registered kCallers("callers", run_part<CallersPart>);

}  // namespace
}  // namespace fcap::bench
