#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/rule.h>

/// The words that stand for the values of a rule's fields, the same in SQL and JSON.
namespace fcap::rule_text {

template <typename T>
struct Word {
  std::string_view text;
  T value;
};
template <typename T>
Word(std::string_view, T) -> Word<T>;

inline constexpr std::array kScopeWords{
    Word{"campaign", Scope::kCampaign},
    Word{"creative", Scope::kCreative},
    Word{"advertiser", Scope::kAdvertiser},
    Word{"group", Scope::kGroup},
    Word{"user", Scope::kUser},
};
inline constexpr std::array kEventTypeWords{
    Word{"impression", EventType::kImpression},
    Word{"click", EventType::kClick},
    Word{"viewable", EventType::kViewable},
    Word{"conversion", EventType::kConversion},
};
inline constexpr std::array kWindowKindWords{
    Word{"sliding", Window::Kind::kSliding},
    Word{"calendar", Window::Kind::kCalendar},
    Word{"fixed", Window::Kind::kFixed},
    Word{"lifetime", Window::Kind::kLifetime},
};
inline constexpr std::array kCalendarUnitWords{
    Word{"hour", CalendarUnit::kHour},
    Word{"day", CalendarUnit::kDay},
    Word{"week", CalendarUnit::kWeek},
    Word{"month", CalendarUnit::kMonth},
};
inline constexpr std::array kWeekdayWords{
    Word{"monday", std::chrono::Monday},       Word{"tuesday", std::chrono::Tuesday},
    Word{"wednesday", std::chrono::Wednesday}, Word{"thursday", std::chrono::Thursday},
    Word{"friday", std::chrono::Friday},       Word{"saturday", std::chrono::Saturday},
    Word{"sunday", std::chrono::Sunday},
};
inline constexpr std::array kModeWords{
    Word{"enforce", Rule::Mode::kEnforce},
    Word{"shadow", Rule::Mode::kShadow},
};
inline constexpr std::array kEnforcementWords{
    Word{"soft", Rule::Enforcement::kSoft},
    Word{"hard", Rule::Enforcement::kHard},
};

template <typename Words>
[[nodiscard]] constexpr auto value_of(const Words& words, std::string_view text)
    -> std::optional<decltype(words.front().value)> {
  for (const auto& word : words) {
    if (word.text == text) return word.value;
  }
  return std::nullopt;
}

/// The word of a value; "?" for one that has none.
template <typename Words, typename T>
[[nodiscard]] constexpr std::string_view word_of(const Words& words, T value) {
  for (const auto& word : words) {
    if (word.value == value) return word.text;
  }
  return "?";
}

/// "one of a, b, c", for error texts.
template <typename Words>
[[nodiscard]] std::string one_of(const Words& words) {
  std::string text = "one of ";
  for (const auto& word : words) {
    if (&word != &words.front()) text += ", ";
    text += word.text;
  }
  return text;
}

}  // namespace fcap::rule_text
