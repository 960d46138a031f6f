#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <fcap/checker_options.h>
#include <fcap/segment_set.h>
#include <fcap/status.h>

namespace fcap::sources {

/// What a refresher knows about itself.
struct SegmentRefreshState {
  std::uint64_t reloads = 0;  ///< sets handed out
  std::uint64_t failed = 0;   ///< attempts without a usable answer; the last good set stayed
  std::string last_error;     ///< empty after a success
};

/// Keeps a process's stored segments current, on a thread of its own, so that ten million members
/// that are being read do not keep a changed rule waiting.
///
/// Thread safety: state() from any thread.
class SegmentRefresher {
 public:
  /// Receives each new set, on the refresher's thread.
  using Sink = std::function<void(std::shared_ptr<const SegmentSet>)>;

  /// From `rules`: the connection, the interval, and whether to listen. `thread_started` as in
  /// RedisOptions.
  SegmentRefresher(const SegmentSourceOptions& segments, const RuleSourceOptions& rules, Sink sink,
                   LogCallback log, ThreadCallback thread_started = {});
  /// As stop().
  ~SegmentRefresher();
  SegmentRefresher(const SegmentRefresher&) = delete;
  SegmentRefresher& operator=(const SegmentRefresher&) = delete;

  /// Returns at once. kInvalidArgument: the options do not name one source.
  Status start();
  /// Ok: a set has been handed out. Otherwise the source was looked at without success, or not yet.
  Status wait_for_first_look(std::chrono::milliseconds wait);

  /// Stops and joins the thread; state() stays what it is. A second call does nothing.
  void stop() noexcept;

  [[nodiscard]] SegmentRefreshState state() const;

 private:
  class SegmentThread;
  std::unique_ptr<SegmentThread> impl_;
};

/// What is wrong with the options, if anything.
Status check_segment_options(const SegmentSourceOptions& segments, const RuleSourceOptions& rules);

}  // namespace fcap::sources
