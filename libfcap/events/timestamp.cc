#include "events/timestamp.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fcap::events {
namespace {

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

// A number by the grammar: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
struct Number {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::int64_t exponent = 0;
};

std::size_t digits_at(std::string_view text, std::size_t at) noexcept {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - at;
}

std::optional<Number> parse_number(std::string_view text) noexcept {
  Number number;
  std::size_t at = 0;
  if (!text.empty() && text[0] == '-') {
    number.negative = true;
    at = 1;
  }
  const std::size_t whole = digits_at(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return std::nullopt;
  number.whole = text.substr(at, whole);
  at += whole;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = digits_at(text, at + 1);
    if (fraction == 0) return std::nullopt;
    number.fraction = text.substr(at + 1, fraction);
    at += 1 + fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    const bool down = at < text.size() && text[at] == '-';
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const std::size_t exponent = digits_at(text, at);
    if (exponent == 0) return std::nullopt;
    // Far beyond what any message's digits can make up for; keeps the arithmetic in range.
    constexpr std::int64_t kExponentMax = 1'000'000'000'000;
    for (const char c : text.substr(at, exponent)) {
      number.exponent = std::min(number.exponent * 10 + (c - '0'), kExponentMax);
    }
    if (down) number.exponent = -number.exponent;
    at += exponent;
  }
  if (at != text.size()) return std::nullopt;
  return number;
}

// The significant digits of a number: 0.d1d2d3… × 10^point, d1 not zero.
class Digits {
 public:
  explicit Digits(const Number& number) noexcept
      : whole_(number.whole), fraction_(number.fraction), size_(whole_.size() + fraction_.size()) {
    while (first_ < size_ && at(first_) == 0) ++first_;
    point_ = static_cast<std::int64_t>(whole_.size()) - static_cast<std::int64_t>(first_) +
             number.exponent;
  }

  [[nodiscard]] bool zero() const noexcept { return first_ == size_; }
  [[nodiscard]] std::int64_t point() const noexcept { return point_; }

  // Whether it is above 10^(point - 1), the smallest number with this point.
  [[nodiscard]] bool above_power_of_ten() const noexcept {
    if (at(first_) > 1) return true;
    for (std::size_t i = first_ + 1; i < size_; ++i) {
      if (at(i) != 0) return true;
    }
    return false;
  }

  // The number made of the first `count` significant digits, at most 18.
  [[nodiscard]] std::int64_t leading(std::int64_t count) const noexcept {
    std::int64_t value = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t index = first_ + static_cast<std::size_t>(i);
      value = value * 10 + (index < size_ ? at(index) : 0);
    }
    return value;
  }

 private:
  [[nodiscard]] int at(std::size_t i) const noexcept {
    return (i < whole_.size() ? whole_[i] : fraction_[i - whole_.size()]) - '0';
  }

  std::string_view whole_;
  std::string_view fraction_;
  std::size_t size_;
  std::size_t first_ = 0;
  std::int64_t point_ = 0;
};

}  // namespace

bool is_json_number(std::string_view token) noexcept {
  return parse_number(token).has_value();
}

std::optional<Instant> parse_timestamp(std::string_view json_number) noexcept {
  const auto number = parse_number(json_number);
  if (!number || number->negative) return std::nullopt;
  const Digits digits(*number);
  if (digits.zero()) return std::nullopt;
  // 1e11 is 0.1 × 10^12.
  constexpr std::int64_t kSecondsPoint = 12;
  const bool in_ms = digits.point() > kSecondsPoint ||
                     (digits.point() == kSecondsPoint && digits.above_power_of_ten());
  const std::int64_t count = digits.point() + (in_ms ? 0 : 3);
  constexpr std::int64_t kDigitsMax = 18;
  if (count <= 0 || count > kDigitsMax) return std::nullopt;
  return instant_from_ms(digits.leading(count));
}

}  // namespace fcap::events
