#include "redis/thread_start.h"

#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include <pthread.h>

namespace fcap::redis {

Result<std::thread> start_thread(const char* name, std::function<void()> body) {
  // The new thread inherits the mask, so no signal can slip in before it would set its own.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Status failure;
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
  } catch (const std::system_error& error) {
    failure = Status::error(StatusCode::kInternal,
                            std::string("cannot start thread ") + name + ": " + error.what(), true);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!failure.ok()) return failure;
  return thread;
}

}  // namespace fcap::redis
