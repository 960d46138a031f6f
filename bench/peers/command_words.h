#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <fcap/time.h>

#include "peers/layout.h"
#include "redis/client.h"
#include "redis/command.h"
#include "redis/sha1.h"

/// What the peers' commands are made of, without an allocation.
namespace fcap::bench {

inline constexpr std::chrono::hours kSlidingWindow{24};
inline constexpr std::chrono::days kFixedWindow{30};
inline constexpr std::chrono::days kRetention{32};
/// kRetention for EXPIRE.
inline constexpr std::string_view kRetentionS = "2764800";

/// A number as a word of a command.
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

/// A script, called by its SHA.
struct Script {
  constexpr explicit Script(std::string_view its_text)
      : text(its_text), hex(redis::sha1_hex(text)) {}
  [[nodiscard]] constexpr std::string_view sha() const { return {hex.data(), hex.size()}; }

  std::string_view text;
  std::array<char, 40> hex;
};

/// Puts a key together in a buffer that is used again.
inline std::string_view join(std::string& buffer, std::initializer_list<std::string_view> parts) {
  buffer.clear();
  for (const std::string_view part : parts) buffer.append(part);
  return buffer;
}

/// Begins a command of `first` and `more` further words, which the caller appends.
inline void begin_command(std::string& wire, std::initializer_list<std::string_view> first,
                          std::size_t more) {
  redis::append_word_count(wire, first.size() + more);
  for (const std::string_view word : first) redis::append_word(wire, word);
}

/// Calls `visit` with each longest stretch of neighbours of one campaign that are `alike`.
template <typename Alike, typename Visit>
void for_each_stretch(std::span<const Impression> impressions, Alike alike, Visit visit) {
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= impressions.size(); ++i) {
    if (i < impressions.size() && impressions[begin].campaign == impressions[i].campaign &&
        alike(impressions[begin].time, impressions[i].time)) {
      continue;
    }
    visit(impressions.subspan(begin, i - begin));
    begin = i;
  }
}

/// Reads an array of one element per count. False: it is no such array, or `read_one` says so.
template <typename ReadOne>
bool read_each(const redis::Reply& reply, std::span<std::uint32_t> counts, ReadOne read_one) {
  if (reply.elements.size() != counts.size()) return false;
  bool all = true;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    all = read_one(reply.elements[i], counts[i]) && all;
  }
  return all;
}

}  // namespace fcap::bench
