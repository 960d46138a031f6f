#include "config/rule_refresher.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "config/refresh_loop.h"

namespace fcap::config {
namespace {

/// A thread that is started while all signals are blocked leaves them to the host's threads.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

void signal_event(int fd) noexcept {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then it is readable already.
  (void)!::write(fd, &one, sizeof one);
}

}  // namespace

class RuleRefresher::Impl {
 public:
  Impl(RuleSourceOptions options, RuleSet::Options build_options, Sink sink, LogCallback log)
      : stop_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        wake_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        loop_(std::move(options), build_options, std::move(sink), std::move(log),
              {stop_event_.fd(), wake_event_.fd()}) {}

  ~Impl() {
    signal_event(stop_event_.fd());
    if (thread_.joinable()) thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status start(std::chrono::milliseconds wait) {
    if (thread_.joinable()) {
      return Status::error(StatusCode::kInvalidArgument, "the rule refresher runs already");
    }
    if (!stop_event_.open() || !wake_event_.open()) {
      return Status::error(StatusCode::kInternal, "no file descriptor for the rule refresher");
    }
    if (Status status = loop_.check_options(); !status.ok()) return status;
    try {
      const AllSignalsBlocked blocked;
      thread_ = std::thread([this, wait] { loop_.run(wait); });
    } catch (const std::system_error& failure) {
      return Status::error(StatusCode::kInternal,
                           std::string("the rule refresher's thread: ") + failure.what(), true);
    }
    return loop_.wait_for_first_round(wait);
  }

  void poke() noexcept { signal_event(wake_event_.fd()); }

  [[nodiscard]] RefreshState state() const { return loop_.state(); }

 private:
  FileHandle stop_event_;
  FileHandle wake_event_;
  RefreshLoop loop_;
  std::thread thread_;
};

RuleRefresher::RuleRefresher(RuleSourceOptions options, RuleSet::Options build_options, Sink sink,
                             LogCallback log)
    : impl_(std::make_unique<Impl>(std::move(options), build_options, std::move(sink),
                                   std::move(log))) {}

RuleRefresher::~RuleRefresher() = default;

Status RuleRefresher::start(std::chrono::milliseconds wait) {
  return impl_->start(wait);
}

void RuleRefresher::poke() noexcept {
  impl_->poke();
}

RefreshState RuleRefresher::state() const {
  return impl_->state();
}

}  // namespace fcap::config
