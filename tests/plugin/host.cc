// host PLUGIN: loads the plug-in, has it use a Checker and unloads it: once where Redis has a
// numeric address, and once where the system's resolver is still looking its name up. Exits with 0,
// or prints what is wrong and exits with 1.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <dlfcn.h>
#include <netdb.h>

#include "support/thread_state.h"

namespace {

constexpr std::string_view kSlowName = "slow.invalid";

std::atomic<bool> looking_up{false};
std::atomic<bool> may_answer{false};

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

bool is_mapped(const char* library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(library) != std::string::npos) return true;
  }
  return false;
}

bool use_plugin(const char* plugin, const char* redis, void (*wait)()) {
  void* const loaded = ::dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return false;
  }
  auto* const use =
      reinterpret_cast<bool (*)(const char*, void (*)())>(::dlsym(loaded, "use_checker"));
  bool used = use != nullptr;
  // Not on this thread, whose thread-local objects would keep the library until it ends.
  if (used) std::thread([&] { used = use(redis, wait); }).join();
  if (!used) std::fprintf(stderr, "the plug-in could not use a Checker\n");
  return ::dlclose(loaded) == 0 && used;
}

}  // namespace

// In place of the system's: one name takes until the test says so.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* name,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** found) {
  const bool may_ask = hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0;
  if (name != nullptr && kSlowName == name && may_ask) {
    looking_up = true;
    wait_for(may_answer);
    return EAI_AGAIN;
  }
  static const auto the_systems =
      reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return the_systems(name, service, hints, found);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const char* const plugin = argv[1];
  if (!use_plugin(plugin, "127.0.0.1:9", [] {})) return 1;
  if (is_mapped(plugin) || is_mapped("libfcap.so")) {
    std::fprintf(stderr, "dlclose() has not unmapped the plug-in\n");
    return 1;
  }
  if (!use_plugin(plugin, "slow.invalid:6379", [] { wait_for(looking_up); })) return 1;
  if (is_mapped("libfcap.so") && is_mapped(plugin)) {
    std::fprintf(stderr, "the thread that is left keeps more than libfcap\n");
    return 1;
  }
  may_answer = true;
  while (fcap::thread_named("fcap-resolve") != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  std::puts("the thread that looked a name up has ended well");
  return 0;
}
