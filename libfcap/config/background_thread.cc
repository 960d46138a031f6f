#include "config/background_thread.h"

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

BackgroundThread::BackgroundThread()
    : stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

BackgroundThread::~BackgroundThread() {
  stop();
}

Status BackgroundThread::start(std::string_view what, std::function<void()> run) {
  const std::string name(what);
  if (thread_.joinable()) {
    return Status::error(StatusCode::kInvalidArgument, name + " runs already");
  }
  if (!stop_.open() || !wake_.open()) {
    return Status::error(StatusCode::kInternal, "no file descriptor for " + name);
  }
  try {
    const AllSignalsBlocked blocked;
    thread_ = std::thread(std::move(run));
  } catch (const std::system_error& failure) {
    return Status::error(StatusCode::kInternal, "the thread of " + name + ": " + failure.what(),
                         true);
  }
  return {};
}

void BackgroundThread::stop() noexcept {
  signal_event(stop_.fd());
  if (thread_.joinable()) thread_.join();
}

void BackgroundThread::wake() noexcept {
  signal_event(wake_.fd());
}

}  // namespace fcap::config
