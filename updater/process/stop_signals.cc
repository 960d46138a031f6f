#include "updater/process/stop_signals.h"

#include <csignal>
#include <cstdint>

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace fcap::updater {

StopSignals::StopSignals(std::chrono::milliseconds doubled) : doubled_(doubled) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  // SIGHUP stays ignored where it is ignored already, as under nohup.
  struct sigaction hangup = {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    sigaddset(&set, SIGHUP);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // librdkafka and civetweb write to sockets that their peers may have closed.
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  const int signals = signalfd(-1, &set, SFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this, signals, end = end_] { watch(signals, end); });
}

StopSignals::~StopSignals() {
  const std::uint64_t one = 1;
  if (write(end_, &one, sizeof(one)) == sizeof(one)) {
    thread_.join();
  } else {
    thread_.detach();
  }
  close(end_);
}

void StopSignals::watch(int signals, int end) {
  std::chrono::steady_clock::time_point first;
  while (true) {
    pollfd waited[] = {{signals, POLLIN, 0}, {end, POLLIN, 0}};
    if (poll(waited, 2, -1) < 0) continue;
    if (waited[1].revents != 0) break;
    signalfd_siginfo info{};
    if (read(signals, &info, sizeof(info)) != sizeof(info)) continue;
    const std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
    if (stop_.stop_requested() && now - first < doubled_) continue;
    if (stop_.stop_requested()) {
      spdlog::warn("a second signal: ending at once; what was in flight will be read again");
      _exit(1);
    }
    first = now;
    spdlog::info("signal {}: stopping", info.ssi_signo);
    stop_.request_stop();
  }
  close(signals);
}

}  // namespace fcap::updater
