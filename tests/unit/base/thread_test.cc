#include "base/thread.h"

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fcap::base {
namespace thread_test {

constexpr int kHandlerRan = 42;

// What `body` sees on a thread of its own.
void on_thread(std::string_view name, std::function<void()> body, ThreadHook hook = {}) {
  auto started = start_thread(name, std::move(body), std::move(hook));
  ASSERT_TRUE(started.ok()) << started.status().text();
  started.value().join();
}

// A fault, not raise(): the kernel kills a process that blocks the signal of its own fault.
void fault() {
  void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<volatile char*>(page) = 1;
}

TEST(Thread, BlocksTheHostsSignalsButNotThoseOfItsFaultsAndOfProfilers) {
  sigset_t here_before;
  sigset_t there;
  pthread_sigmask(SIG_SETMASK, nullptr, &here_before);
  on_thread("fcap-test", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &there); });
  for (const int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    EXPECT_EQ(sigismember(&there, open), 0) << strsignal(open);
  }
  for (const int blocked :
       {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE, SIGALRM, SIGRTMIN, SIGRTMAX}) {
    EXPECT_EQ(sigismember(&there, blocked), 1) << strsignal(blocked);
  }
  sigset_t here_after;
  pthread_sigmask(SIG_SETMASK, nullptr, &here_after);
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    EXPECT_EQ(sigismember(&here_before, signal), sigismember(&here_after, signal)) << signal;
  }
}

TEST(Thread, ItsFaultReachesTheHostsHandler) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    struct sigaction action {};
    action.sa_handler = [](int) { ::_exit(kHandlerRan); };
    ::sigaction(SIGSEGV, &action, nullptr);
    auto started = start_thread("fcap-test", fault);
    if (started.ok()) started.value().join();
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kHandlerRan) << "wait status " << status;
}

TEST(Thread, CarriesItsNameWhenTheHookIsCalledFirst) {
  std::string told;
  std::string name_in_hook;
  std::string in_body;
  on_thread(
      "fcap-a-name-that-is-too-long", [&] { in_body = told; },
      [&](std::string_view name) {
        told = name;
        std::array<char, 32> text{};
        pthread_getname_np(pthread_self(), text.data(), text.size());
        name_in_hook = text.data();
      });
  EXPECT_EQ(told, "fcap-a-name-tha");
  EXPECT_EQ(name_in_hook, told);
  EXPECT_EQ(in_body, told);
}

TEST(DetachedThread, EndsAfterWhatItOwnsIsGone) {
  auto owned = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = owned;
  auto ended = start_detached("fcap-test", [owned = std::move(owned)] { *owned = 1; });
  ASSERT_TRUE(ended.ok()) << ended.status().text();
  ended.value().wait();
  EXPECT_TRUE(watched.expired());
}

}  // namespace thread_test
}  // namespace fcap::base
