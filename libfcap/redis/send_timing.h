#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace fcap::redis {

/// When the requests that wait for one node of a cluster are sent. Each send costs this process
/// more than a request does, and costs the node a read of its own. An I/O thread divides its
/// requests among all nodes, so if it sent them after each event, each send would carry few. Pure:
/// it is told how many requests wait, and how many the node has not answered yet.
class SendTiming {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kTogetherMin = 8;
  static constexpr std::size_t kTogetherMax = 64;
  /// The longest that requests are held back.
  static constexpr std::chrono::microseconds kHeldMax{100};

  /// Whether so many requests are enough for a send of their own: half of what is in flight, within
  /// bounds, so that the node works on one half while this process deals with the other.
  [[nodiscard]] static constexpr bool is_enough(std::size_t waiting,
                                                std::size_t in_flight) noexcept {
    return waiting >= std::clamp(in_flight / 2, kTogetherMin, kTogetherMax);
  }

  /// Whether the requests are held back until the thread has dealt with the events that other
  /// sockets have now, because replies there lead to more requests for this node too. A node that
  /// has nothing to work on gets them at once.
  [[nodiscard]] constexpr bool holds_back(std::size_t waiting, std::size_t in_flight,
                                          TimePoint now) noexcept {
    if (waiting == 0 || in_flight == 0 || is_enough(waiting, in_flight)) {
      sent();
      return false;
    }
    held_since_ = std::min(held_since_, now);
    if (now - held_since_ < kHeldMax) return true;
    sent();
    return false;
  }

  /// What was held back has been sent.
  constexpr void sent() noexcept { held_since_ = TimePoint::max(); }

 private:
  TimePoint held_since_ = TimePoint::max();
};

}  // namespace fcap::redis
