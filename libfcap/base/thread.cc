#include "base/thread.h"

#include <csignal>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <dlfcn.h>
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

// Keeps the shared object mapped that has this code: libfcap, or what it is linked into. One handle
// is never closed. In a program that has it itself, there is nothing to keep.
void stay_mapped() noexcept {
  Dl_info own{};
  if (::dladdr(reinterpret_cast<const void*>(&stay_mapped), &own) == 0) return;
  (void)::dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

Result<std::thread> start_thread(std::string_view name, std::function<void()> body,
                                 ThreadHook hook) {
  const std::string short_name(name.substr(0, kNameBytesMax));
  const ThreadMask mask;
  try {
    std::thread thread([short_name, body = std::move(body), hook = std::move(hook)]() mutable {
      pthread_setname_np(pthread_self(), short_name.c_str());
      // The hook is the host's code, which may be gone before a thread that nobody joins.
      if (hook) std::exchange(hook, nullptr)(short_name);
      body();
    });
    // The name is set here, too, so that the thread has it when this returns, even before it runs.
    pthread_setname_np(thread.native_handle(), short_name.c_str());
    return thread;
  } catch (const std::exception& error) {  // no more threads, or no memory
    return Status::error(StatusCode::kInternal,
                         "cannot start thread " + short_name + ": " + error.what(), true);
  }
}

void detach(std::thread thread) noexcept {
  stay_mapped();
  thread.detach();
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
  detach(std::move(thread).value());
  return end;
}

}  // namespace fcap::base
