#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/time.h>

namespace fcap::bench {

/// How people come: sessions of 1 to 8 pages, 5 to 30 s apart, each showing 1 to 4 impressions.
/// Each impression's beacon takes a time of its own (log-normal: median 1 s, 99th percentile 30 s,
/// cut at a minute), so a page's impressions arrive seconds apart. One impression is much like
/// another; what matters to a writer is how near each other a user's events lie.
struct SessionOptions {
  std::size_t users = 100'000;
  std::size_t campaigns = 1'000;
  /// Of the traffic that is modelled, not how fast the stream is read.
  double events_per_second = 20'000;
  Instant start;
  std::uint64_t seed = 1;
};

/// One impression of the stream. Ids are made from the numbers, and have 36 characters.
struct Arrival {
  Instant time;  ///< shown at
  std::uint64_t user = 0;
  std::uint64_t campaign = 0;
  std::uint64_t number = 0;  ///< unique within the stream
};

/// Impressions in the order of their arrival, the same for the same options; endless. It starts in
/// the middle of things: with sessions of all ages under way.
class SessionStream {
 public:
  explicit SessionStream(const SessionOptions& options);
  Arrival next();

 private:
  struct Step {
    std::int64_t due_ms;
    std::int64_t shown_ms;
    std::uint64_t user;
    std::uint32_t pages_left;  // 0: an impression
    bool operator>(const Step& other) const noexcept { return due_ms > other.due_ms; }
  };

  Step pop();
  void open_page(const Step& page);
  void start_session();

  SessionOptions options_;
  std::mt19937_64 random_;
  std::priority_queue<Step, std::vector<Step>, std::greater<>> steps_;
  double next_session_ms_;
  double between_sessions_ms_;
  std::uint64_t number_ = 0;
};

/// A UUID's 36 characters, from a number of a kind: equal pairs give equal ids.
void append_uuid(std::string& out, std::uint64_t kind, std::uint64_t number);
[[nodiscard]] std::string uuid(std::uint64_t kind, std::uint64_t number);
inline constexpr std::uint64_t kUserIds = 1;
inline constexpr std::uint64_t kImpressionIds = 2;

/// The impression as a message of the topic; replaces `out`.
void write_message(const Arrival& arrival, std::string_view user_id, std::string& out);

}  // namespace fcap::bench
