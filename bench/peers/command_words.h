#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <fcap/time.h>

#include "peers/layout.h"

/// What the peers' commands are made of.
namespace fcap::bench {

inline constexpr std::chrono::hours kSlidingWindow{24};
inline constexpr std::chrono::days kFixedWindow{30};
inline constexpr std::chrono::days kRetention{32};
/// kRetention for EXPIRE.
inline constexpr std::string_view kRetentionS = "2764800";

/// A number as a word of a command, without an allocation.
class NumberWord {
 public:
  explicit NumberWord(std::int64_t number) noexcept
      : size_(static_cast<std::size_t>(std::to_chars(text_, text_ + sizeof text_, number).ptr -
                                       text_)) {}
  operator std::string_view() const noexcept {  // NOLINT(google-explicit-constructor)
    return {text_, size_};
  }

 private:
  char text_[20];
  std::size_t size_;
};

/// Puts a key together in a buffer that is used again.
inline std::string_view join(std::string& buffer, std::initializer_list<std::string_view> parts) {
  buffer.clear();
  for (const std::string_view part : parts) buffer.append(part);
  return buffer;
}

/// The month of an instant, UTC, as 202601.
inline std::int64_t month_of(Instant time) noexcept {
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(time)};
  return static_cast<std::int64_t>(static_cast<int>(date.year())) * 100 +
         static_cast<std::int64_t>(static_cast<unsigned>(date.month()));
}

/// Calls `visit` with each longest stretch of neighbours that are `alike`.
template <typename Alike, typename Visit>
void for_each_stretch(std::span<const Impression> impressions, Alike alike, Visit visit) {
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= impressions.size(); ++i) {
    if (i < impressions.size() && alike(impressions[begin], impressions[i])) continue;
    visit(impressions.subspan(begin, i - begin));
    begin = i;
  }
}

inline bool same_campaign(const Impression& a, const Impression& b) noexcept {
  return a.campaign == b.campaign;
}

inline bool same_campaign_and_month(const Impression& a, const Impression& b) noexcept {
  return a.campaign == b.campaign && month_of(a.time) == month_of(b.time);
}

/// A count that a server stored as text; absent: 0. False: the reply is not a count.
inline bool read_count(const redis::Reply& reply, std::uint32_t& count) noexcept {
  if (reply.kind == redis::Reply::Kind::kNil) return true;
  if (reply.kind != redis::Reply::Kind::kString) return false;
  const char* const end = reply.text.data() + reply.text.size();
  return std::from_chars(reply.text.data(), end, count).ptr == end;
}

}  // namespace fcap::bench
