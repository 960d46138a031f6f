// LD_PRELOAD=libfcap_shifted_clock.so FCAP_PRELOADED_CLOCK_AHEAD_MS=5000 PROGRAM: runs a program
// whose wall clock is ahead (or, with a number below zero, behind). Clocks that only measure are
// right.
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>

namespace {

using ClockGettime = int (*)(clockid_t, timespec*);

long long clock_ahead_ms() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  static const char* const text = std::getenv("FCAP_PRELOADED_CLOCK_AHEAD_MS");
  static const long long ms = text == nullptr ? 0 : std::atoll(text);
  return ms;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    timespec* now) noexcept {
  static const auto real = reinterpret_cast<ClockGettime>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, now);
  if (result != 0 || clock != CLOCK_REALTIME) return result;
  constexpr long long kMsPerSecond = 1000;
  constexpr long long kNsPerMs = 1'000'000;
  const long long ms = now->tv_sec * kMsPerSecond + now->tv_nsec / kNsPerMs + clock_ahead_ms();
  now->tv_nsec = (ms % kMsPerSecond) * kNsPerMs + now->tv_nsec % kNsPerMs;
  now->tv_sec = ms / kMsPerSecond;
  return result;
}
