// A plug-in with libfcap, as a server loads and unloads it: makes a Checker and destroys it again.
#include <memory>
#include <utility>

#include <fcap/checker.h>

// `wait` is called while the Checker lives. False: it could not be made.
extern "C" __attribute__((visibility("default"))) bool use_checker(const char* redis,
                                                                   void (*wait)()) {
  fcap::CheckerOptions options;
  options.redis.addresses = {redis};
  // The plug-in's own code, on each of the Checker's threads.
  options.redis.thread_started = [](std::string_view) {};
  const auto made = fcap::Checker::create(std::move(options));
  if (made.ok()) wait();
  return made.ok();
}
