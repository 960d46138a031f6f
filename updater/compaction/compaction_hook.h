#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fcap::updater {

/// What the write path tells compaction.
class CompactionHook {
 public:
  /// A record was appended to and has `length_after_bytes` now. Called after the acknowledgement,
  /// once per user and batch, from any thread. Never blocks, never fails; the views need to live
  /// only until it returns.
  virtual void on_user_written(std::string_view key, std::size_t length_after_bytes,
                               std::size_t appended_bytes) noexcept = 0;

  /// What on_user_written() is told of one record.
  struct Written {
    std::string_view key;
    std::size_t length_after_bytes;
    std::size_t appended_bytes;
  };
  /// Does the same for a batch's records.
  virtual void on_users_written(std::span<const Written> written) noexcept {
    for (const Written& one : written) {
      on_user_written(one.key, one.length_after_bytes, one.appended_bytes);
    }
  }

  /// Whether writes wait for a slow Redis: compaction then takes little of it.
  virtual void set_writes_wait(bool wait) noexcept = 0;

 protected:
  ~CompactionHook() = default;
};

}  // namespace fcap::updater
