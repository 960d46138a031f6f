#include "base/background_thread.h"

#include <cstdint>
#include <string>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace fcap::base {
namespace {

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

Status BackgroundThread::start(std::string_view name, std::function<void()> run, ThreadHook hook) {
  if (thread_.joinable()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "thread " + std::string(name) + " runs already");
  }
  if (!stop_.open() || !wake_.open()) {
    return Status::error(StatusCode::kInternal,
                         "no file descriptor for thread " + std::string(name));
  }
  auto started = start_thread(name, std::move(run), std::move(hook));
  if (!started.ok()) return started.status();
  thread_ = std::move(started).value();
  return {};
}

void BackgroundThread::stop() noexcept {
  signal_event(stop_.fd());
  if (thread_.joinable()) thread_.join();
}

void BackgroundThread::wake() noexcept {
  signal_event(wake_.fd());
}

void BackgroundThread::close_descriptors() noexcept {
  stop_.close();
  wake_.close();
}

}  // namespace fcap::base
