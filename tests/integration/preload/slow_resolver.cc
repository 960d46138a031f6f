// LD_PRELOAD=libfcap_slow_resolver.so PROGRAM: runs a program whose look-ups of names under
// ".invalid" take until it ends.
#include <cstring>

#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* name,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** found) {
  static const auto real =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (name != nullptr && std::strstr(name, ".invalid") != nullptr) {
    while (true) pause();
  }
  return real(name, service, hints, found);
}
