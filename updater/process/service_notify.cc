#include "updater/process/service_notify.h"

#include <cstdint>

#include <systemd/sd-daemon.h>

namespace fcap::updater {

void ServiceNotify::ready() noexcept {
  sd_notify(0, "READY=1");
}

void ServiceNotify::stopping() noexcept {
  sd_notify(0, "STOPPING=1\nSTATUS=stopping");
}

void ServiceNotify::restarting() noexcept {
  // STOPPING would have systemd wait for the end of the process, and kill it.
  sd_notify(0, "RELOADING=1\nWATCHDOG=1\nSTATUS=restarting to read files that have changed");
}

void ServiceNotify::alive(const std::string& status) noexcept {
  sd_notifyf(0, "WATCHDOG=1\nSTATUS=%s", status.c_str());
}

std::optional<std::chrono::microseconds> ServiceNotify::watchdog_interval() noexcept {
  std::uint64_t us = 0;
  if (sd_watchdog_enabled(0, &us) <= 0) return std::nullopt;
  return std::chrono::microseconds{us};
}

}  // namespace fcap::updater
