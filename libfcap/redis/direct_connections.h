#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "redis/direct_connection.h"

namespace fcap::redis {

/// A link's direct connections. They are made when the first caller asks for one, to the server
/// that the link is connected to, and go when the link's connection goes.
///
/// Thread safety: read() and reads() from any thread; all else on the I/O thread.
class DirectConnections {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  DirectConnections(SharedState& shared, Poller& poller, const Address& address,
                    const base::Jitter& jitter);

  /// As DirectReads::read(), on a connection that is idle, if there is one.
  [[nodiscard]] bool read(std::string_view key, TimePoint deadline, StoreCompletion& done) noexcept;
  /// How many replies they have given in time.
  [[nodiscard]] std::uint64_t reads() const noexcept;

  void on_link_ready(const Endpoint& endpoint, const std::string& server_name);
  void on_link_gone(TimePoint now);

  /// What callers have met since the last call.
  struct Met {
    std::size_t answers = 0;
    std::size_t failures = 0;
  };
  [[nodiscard]] Met tick(TimePoint now);
  [[nodiscard]] TimePoint next_time() const noexcept;
  /// At the end, when no caller has one any more.
  void shut_down(TimePoint now);
  void close_descriptors() noexcept;

 private:
  SharedState& shared_;
  Poller& poller_;
  std::atomic<bool> wanted_{false};
  std::vector<std::unique_ptr<DirectConnection>> connections_;
  std::optional<Endpoint> endpoint_;
  std::string server_name_;
  std::uint64_t reads_seen_ = 0;
  TimePoint seen_at_;
};

}  // namespace fcap::redis
