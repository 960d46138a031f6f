#pragma once

#include <cstddef>
#include <string_view>

namespace fcap::updater {

/// What the write path tells compaction: the only thing that either knows of the other.
class CompactionHook {
 public:
  /// A record was appended to and has `length_after_bytes` now. Called after the acknowledgement,
  /// once a user and batch, from any thread. Never blocks, never fails; the views need to live only
  /// until it returns.
  virtual void on_user_written(std::string_view key, std::size_t length_after_bytes,
                               std::size_t appended_bytes) noexcept = 0;

 protected:
  ~CompactionHook() = default;
};

}  // namespace fcap::updater
