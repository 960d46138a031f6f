#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fcap/status.h>

#include "redis/client.h"

namespace fcap::updater {

/// Finds the keys of all records, some at a time.
///
/// Thread safety: belongs to one thread, which it makes wait.
class SweepKeys {
 public:
  struct Options {
    std::string key_prefix;
    std::int64_t scan_count = 0;
    std::chrono::milliseconds deadline{0};
  };

  virtual ~SweepKeys() = default;

  /// A key for each master, of a slot that it serves; none while they are not known.
  [[nodiscard]] virtual std::vector<std::string> masters() const = 0;
  /// Puts some more in the place of `keys`, perhaps none. After an error it can be called again,
  /// and leaves nothing out.
  [[nodiscard]] virtual Status next(std::vector<std::string>& keys) = 0;
  /// Whether next() has found all records that have been there from its first call to now.
  [[nodiscard]] virtual bool over() const = 0;
};

/// Lists the keys of one server by SCAN; a key may be found more than once.
[[nodiscard]] std::unique_ptr<SweepKeys> make_server_keys(redis::Client& client,
                                                          const SweepKeys::Options& options);
/// Lists the keys of a cluster, slot by slot.
///
/// A cursor of SCAN belongs to one node, and slots that move meanwhile could be passed over. Here
/// one command lists a whole slot, between two commands that show whether its node still serves it.
/// If its keys are on the way to another node, both nodes list theirs, the former owner first and
/// once more at the end: a key that it did not have was with the other one already. What cannot be
/// listed is tried again after all others.
[[nodiscard]] std::unique_ptr<SweepKeys> make_cluster_keys(redis::Client& client,
                                                           const SweepKeys::Options& options);

}  // namespace fcap::updater
