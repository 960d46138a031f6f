#pragma once

#include <string_view>

#include <fcap/store.h>

namespace fcap::redis {

/// A Store that can also read on its caller's own thread, which saves waking the I/O thread and
/// being woken by it. Found by Store::direct_reads().
class DirectReads {
 public:
  /// Reads a record and waits for it, until the deadline. `done` has been completed, on this
  /// thread, when it returns true. False: not possible now, and nothing has happened; Store::get()
  /// goes another way. Not ordered with other operations on the key. Keeps errno, and is not
  /// interrupted by signals.
  ///
  /// Thread safety: from any thread. The store must stay while a call is inside; a forked child
  /// must not call it.
  [[nodiscard]] virtual bool read(std::string_view key, Store::Deadline deadline,
                                  StoreCompletion& done) noexcept = 0;

  /// From now on read() returns false; calls that are under way do so at once.
  virtual void stop_reads() noexcept = 0;

 protected:
  ~DirectReads() = default;
};

}  // namespace fcap::redis
