#include "base/thread.h"

#include <csignal>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <pthread.h>

namespace fcap::base {
namespace {

constexpr std::size_t kNameBytesMax = 15;  // the kernel's bound

// Blocks signals while threads are started. A new thread inherits the mask, so no signal can reach
// it before it could set its own.
class ThreadMask {
 public:
  ThreadMask() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      sigdelset(&blocked, open);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~ThreadMask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  ThreadMask(const ThreadMask&) = delete;
  ThreadMask& operator=(const ThreadMask&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::thread> start_thread(std::string_view name, std::function<void()> body,
                                 ThreadHook hook) {
  const std::string short_name(name.substr(0, kNameBytesMax));
  const ThreadMask mask;
  try {
    std::thread thread([short_name, body = std::move(body), hook = std::move(hook)] {
      pthread_setname_np(pthread_self(), short_name.c_str());
      if (hook) hook(short_name);
      body();
    });
    // Also from here, so that the thread has its name when this returns, whether it has run or not.
    pthread_setname_np(thread.native_handle(), short_name.c_str());
    return thread;
  } catch (const std::exception& error) {  // no more threads, or no memory
    return Status::error(StatusCode::kInternal,
                         "cannot start thread " + short_name + ": " + error.what(), true);
  }
}

Result<std::future<void>> start_detached(std::string_view name, std::function<void()> body) {
  auto ended = std::make_shared<std::promise<void>>();
  auto end = ended->get_future();
  auto thread = start_thread(name, [body = std::move(body), ended = std::move(ended)]() mutable {
    body();
    body = nullptr;
    ended->set_value();
  });
  if (!thread.ok()) return thread.status();
  std::move(thread).value().detach();
  return end;
}

}  // namespace fcap::base
