#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include <fcap/status.h>

#include "base/file_handle.h"
#include "base/thread.h"

namespace fcap::base {

/// Descriptors that become readable: `stop` for good, `wake` to look at once. Not owned.
struct LoopEvents {
  int stop = -1;
  int wake = -1;
};

/// A thread that leaves the host's signals to the host's threads (base/thread.h), and the two
/// events that reach it.
///
/// Thread safety: wake() from any thread.
class BackgroundThread {
 public:
  BackgroundThread();
  /// Says stop, and waits for the thread's end.
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  /// `name` is the thread's, at most 15 characters. `run` must return once the stop event is
  /// readable. `hook` runs first.
  Status start(std::string_view name, std::function<void()> run, ThreadHook hook = {});
  /// Stops the thread and waits for its end. A second call does nothing.
  void stop() noexcept;
  void wake() noexcept;
  /// For a forked child, where the thread does not exist.
  void close_descriptors() noexcept;
  [[nodiscard]] LoopEvents events() const noexcept { return {stop_.fd(), wake_.fd()}; }

 private:
  FileHandle stop_;
  FileHandle wake_;
  std::thread thread_;
};

}  // namespace fcap::base
