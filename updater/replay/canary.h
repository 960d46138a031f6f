#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "redis/client.h"

namespace fcap::updater {

/// A key that is written before a replay and looked for during and after it. Gone, or reached over
/// another connection than before: Redis may have lost what was written meanwhile (emptied,
/// restored from a snapshot, failed over to a replica that was behind).
class Canary {
 public:
  Canary(std::shared_ptr<redis::Client> client, std::string key,
         std::chrono::milliseconds deadline);
  /// Removes the key.
  ~Canary();
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  /// Writes the key, in a few attempts; false: Redis does not take it, and why() says the rest. May
  /// be called again.
  bool plant();
  /// Whether it is still there, on the connection on which it was written.
  bool alive();
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  bool write();

  std::shared_ptr<redis::Client> client_;
  std::string key_;
  std::string value_;
  std::chrono::milliseconds deadline_;
  std::uint64_t epoch_ = 0;
  bool planted_ = false;
  std::string why_ = "it does not answer";
};

}  // namespace fcap::updater
