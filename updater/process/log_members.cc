#include "updater/process/log_members.h"

#include <charconv>
#include <cstddef>

namespace fcap::updater {
namespace {

constexpr std::size_t kCodeBytesMin = 3;

bool is_upper(char c) noexcept {
  return c >= 'A' && c <= 'Z';
}

// The number behind the first `word` that has one.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view word) noexcept {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at)) {
    const bool is_word = at == 0 || text[at - 1] == ' ' || text[at - 1] == '(';
    at += word.size();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (is_word && error == std::errc{} && end != text.data() + at) return value;
  }
  return std::nullopt;
}

std::string_view error_code(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins =
        is_upper(text[at]) &&
        (at == 0 || text[at - 1] == '(' || (at >= 2 && text[at - 1] == ' ' && text[at - 2] == ':'));
    if (!begins) continue;
    std::size_t end = at;
    while (end < text.size() && is_upper(text[end])) ++end;
    if (end - at >= kCodeBytesMin && end < text.size() && text[end] == ' ') {
      return text.substr(at, end - at);
    }
    at = end;
  }
  return {};
}

}  // namespace

LogMembers log_members(std::string_view text) noexcept {
  return {number_behind(text, "partition "), number_behind(text, "offset "), error_code(text)};
}

}  // namespace fcap::updater
