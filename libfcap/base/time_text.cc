#include "base/time_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

namespace fcap::base {
namespace {

using std::chrono::milliseconds;

struct LengthUnit {
  std::string_view name;
  std::int64_t ms;
};

// From the largest, so that the first one without a remainder is the one to write.
constexpr std::array kLengthUnits{LengthUnit{"d", 86'400'000}, LengthUnit{"h", 3'600'000},
                                  LengthUnit{"m", 60'000}, LengthUnit{"s", 1000},
                                  LengthUnit{"ms", 1}};

constexpr Instant kFirstInstant{std::chrono::sys_days{std::chrono::year{0} / 1 / 1}};
constexpr Instant kLastInstant{std::chrono::sys_days{std::chrono::year{10000} / 1 / 1} -
                               milliseconds{1}};

// Reads fixed-width numbers and literal characters off the front of a text.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }

  bool literal(char expected) {
    if (rest_.empty() || rest_.front() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<int> digit() {
    if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') return std::nullopt;
    const int value = rest_.front() - '0';
    rest_.remove_prefix(1);
    return value;
  }

  std::optional<int> number(int width, int most) {
    int value = 0;
    for (int i = 0; i < width; ++i) {
      const std::optional<int> next = digit();
      if (!next) return std::nullopt;
      value = value * 10 + *next;
    }
    return value <= most ? std::optional<int>(value) : std::nullopt;
  }

 private:
  std::string_view rest_;
};

std::optional<std::chrono::sys_days> read_date(TimeReader& reader) {
  const auto year = reader.number(4, 9999);
  if (!year || !reader.literal('-')) return std::nullopt;
  const auto month = reader.number(2, 12);
  if (!month || !reader.literal('-')) return std::nullopt;
  const auto day = reader.number(2, 31);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days{date};
}

std::optional<milliseconds> read_fraction(TimeReader& reader) {
  if (!reader.literal('.')) return milliseconds{0};
  std::optional<int> next = reader.digit();
  if (!next) return std::nullopt;
  int ms = 0;
  for (int weight = 100; next; weight /= 10, next = reader.digit()) ms += *next * weight;
  return milliseconds{ms};
}

std::optional<milliseconds> read_time_of_day(TimeReader& reader) {
  const auto hour = reader.number(2, 23);
  if (!hour || !reader.literal(':')) return std::nullopt;
  const auto minute = reader.number(2, 59);
  if (!minute || !reader.literal(':')) return std::nullopt;
  const auto second = reader.number(2, 59);
  if (!second) return std::nullopt;
  const auto fraction = read_fraction(reader);
  if (!fraction) return std::nullopt;
  return std::chrono::hours{*hour} + std::chrono::minutes{*minute} + std::chrono::seconds{*second} +
         *fraction;
}

// East of Greenwich is positive.
std::optional<milliseconds> read_offset(TimeReader& reader) {
  if (reader.literal('Z') || reader.literal('z')) return milliseconds{0};
  const bool east = reader.literal('+');
  if (!east && !reader.literal('-')) return std::nullopt;
  const auto hour = reader.number(2, 23);
  if (!hour || !reader.literal(':')) return std::nullopt;
  const auto minute = reader.number(2, 59);
  if (!minute) return std::nullopt;
  const milliseconds size = std::chrono::hours{*hour} + std::chrono::minutes{*minute};
  return east ? size : -size;
}

void append_number(std::string& text, int value, int width) {
  const std::string digits = std::to_string(value);
  text.append(static_cast<std::size_t>(std::max(0, width - static_cast<int>(digits.size()))), '0');
  text.append(digits);
}

}  // namespace

std::optional<milliseconds> parse_length(std::string_view text) {
  if (text.starts_with('0')) return std::nullopt;
  return parse_length_or_zero(text);
}

std::optional<milliseconds> parse_length_or_zero(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || text.front() == '-') return std::nullopt;
  const std::string_view unit_name = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const LengthUnit& unit : kLengthUnits) {
    if (unit.name != unit_name) continue;
    if (count > std::numeric_limits<std::int64_t>::max() / unit.ms) return std::nullopt;
    return milliseconds{count * unit.ms};
  }
  return std::nullopt;
}

std::string format_length(milliseconds length) {
  for (const LengthUnit& unit : kLengthUnits) {
    if (length.count() != 0 && length.count() % unit.ms == 0) {
      return std::to_string(length.count() / unit.ms).append(unit.name);
    }
  }
  return std::to_string(length.count()).append("ms");
}

std::string spoken_length(std::chrono::milliseconds length) {
  struct Unit {
    std::int64_t ms;
    std::string_view word;
  };
  static constexpr std::array<Unit, 5> kUnits{
      {{86'400'000, " d"}, {3'600'000, " h"}, {60'000, " min"}, {1000, " s"}, {1, " ms"}}};
  std::int64_t left = length.count();
  if (left <= 0) return "0 s";
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const std::int64_t whole = left / kUnits[i].ms;
    if (whole == 0) continue;
    std::string text = std::to_string(whole) + std::string(kUnits[i].word);
    left -= whole * kUnits[i].ms;
    // From ten of a unit on, the next finer one matters too little to be written.
    if (i + 1 < kUnits.size() && whole < 10 && left >= kUnits[i + 1].ms) {
      text += " " + std::to_string(left / kUnits[i + 1].ms) + std::string(kUnits[i + 1].word);
    }
    return text;
  }
  return "0 s";
}

std::optional<Instant> parse_instant(std::string_view text) {
  TimeReader reader(text);
  const auto date = read_date(reader);
  if (!date || !(reader.literal('T') || reader.literal('t') || reader.literal(' '))) {
    return std::nullopt;
  }
  const auto time = read_time_of_day(reader);
  if (!time) return std::nullopt;
  const auto offset = read_offset(reader);
  if (!offset || !reader.done()) return std::nullopt;
  const Instant instant = Instant{*date} + *time - *offset;
  if (instant < kFirstInstant || instant > kLastInstant) return std::nullopt;
  return instant;
}

std::string format_instant(Instant instant, milliseconds offset) {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(offset);
  const std::chrono::hh_mm_ss size{std::chrono::abs(minutes)};
  std::string text = format_instant(std::clamp(instant, kFirstInstant, kLastInstant) + minutes);
  text.back() = minutes.count() < 0 ? '-' : '+';
  append_number(text, static_cast<int>(size.hours().count()), 2);
  append_number(text.append(":"), static_cast<int>(size.minutes().count()), 2);
  return text;
}

std::string format_instant(Instant instant) {
  instant = std::clamp(instant, kFirstInstant, kLastInstant);
  const auto day = std::chrono::floor<std::chrono::days>(instant);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{instant - day};
  std::string text;
  append_number(text, int{date.year()}, 4);
  append_number(text.append("-"), static_cast<int>(unsigned{date.month()}), 2);
  append_number(text.append("-"), static_cast<int>(unsigned{date.day()}), 2);
  append_number(text.append("T"), static_cast<int>(time.hours().count()), 2);
  append_number(text.append(":"), static_cast<int>(time.minutes().count()), 2);
  append_number(text.append(":"), static_cast<int>(time.seconds().count()), 2);
  if (const auto ms = time.subseconds().count(); ms != 0) {
    append_number(text.append("."), static_cast<int>(ms), 3);
  }
  return text.append("Z");
}

}  // namespace fcap::base
