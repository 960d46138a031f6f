#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/client.h"
#include "updater/replay/replay.h"

namespace fcap::updater {

/// A key that is written before a replay and looked for during and after it; in a cluster one in
/// each shard. If it is gone, or reached over another connection than before, Redis may have lost
/// what was written meanwhile: it was emptied, restored from a snapshot, or failed over to a
/// replica that was behind. In a cluster the same holds for a shard that is new, or that has given
/// away the slot of its key.
class Canary {
 public:
  /// One replay with these options has one. The keys stand beside the updater's marks, and end in
  /// "<group>:<topic>:replay" (docs/keys.md).
  Canary(std::shared_ptr<redis::Client> client, const ReplayOptions& replay);
  /// Removes the keys.
  ~Canary();
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  /// Writes the keys, in a few attempts; false: Redis does not take them, for the reason that
  /// why() gives. May be called again.
  bool plant();
  /// Whether each is still there, on the connection on which it was written.
  bool alive();
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  struct CanaryKey {
    std::string shard;  // the master's id, in a cluster
    std::string key;
    std::uint64_t epoch = 0;
  };

  [[nodiscard]] std::string key_of(std::string_view tag) const;
  [[nodiscard]] std::vector<CanaryKey> places_now() const;
  [[nodiscard]] bool same_shards() const;
  [[nodiscard]] bool same_connections() const;
  bool write();
  void remove();

  std::shared_ptr<redis::Client> client_;
  const std::string key_prefix_;
  const std::string whose_;  // the keys, behind the tag
  std::string value_;
  std::chrono::milliseconds deadline_;
  std::vector<CanaryKey> places_;
  bool planted_ = false;
  std::string why_ = "it does not answer";
};

}  // namespace fcap::updater
