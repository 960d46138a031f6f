#include "base/outside_text.h"

#include <algorithm>
#include <utility>

namespace fcap::base {
namespace {

constexpr std::string_view kBlanks = " \r\n";
constexpr std::string_view kPunctuation = ":;,.!?";

bool is_control(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

// U+0080 to U+009F are control characters too: two bytes in UTF-8.
bool is_c1(std::string_view text, std::size_t at) noexcept {
  if (static_cast<unsigned char>(text[at]) != 0xC2 || at + 1 == text.size()) return false;
  const auto next = static_cast<unsigned char>(text[at + 1]);
  return next >= 0x80 && next < 0xA0;
}

bool is_clean(std::string_view text) noexcept {
  // 0xC2 begins letters as well: what has one takes the longer way.
  return std::ranges::none_of(text, [](char c) { return is_control(c) || c == '\xC2'; });
}

void append_hex(char c, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out.append("\\x").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 15U]);
}

void append_printable(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool has_two = is_c1(text, i);
    if (!has_two && !is_control(text[i])) {
      out += text[i];
      continue;
    }
    append_hex(text[i], out);
    if (has_two) append_hex(text[++i], out);
  }
}

}  // namespace

std::string printable(std::string_view text) {
  if (is_clean(text)) return std::string(text);
  std::string out;
  append_printable(text, out);
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t end = text.find('\n');
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string one_line(std::string_view text) {
  if (is_clean(text)) return std::string(text);
  std::string blank(text);
  std::ranges::replace(blank, '\t', ' ');
  std::string out;
  for (std::string_view rest = blank; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
    if (line.empty()) continue;
    if (!out.empty()) out += kPunctuation.find(out.back()) == std::string_view::npos ? "; " : " ";
    append_printable(line, out);
  }
  return out;
}

LogCallback one_line_log(LogCallback log) {
  if (!log) return log;
  return [to = std::move(log)](LogLevel level, std::string_view text) {
    if (is_clean(text)) return to(level, text);
    to(level, one_line(text));
  };
}

}  // namespace fcap::base
