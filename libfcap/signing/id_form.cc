#include "signing/id_form.h"

#include <algorithm>

namespace fcap::signing {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr unsigned kBitsPerDigit = 6;
constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> digit_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}
constexpr auto kValues = digit_values();

std::uint8_t value_of(char digit) noexcept {
  return kValues[static_cast<unsigned char>(digit)];
}

}  // namespace

bool is_key_id(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kKeyIdBytesMax &&
         std::ranges::all_of(text, [](char c) { return value_of(c) != kNoDigit; });
}

Instant IdForm::serve_time() const noexcept {
  std::int64_t ms = 0;
  for (std::size_t i = 0; i < kTimeBytes; ++i) ms = ms << 8U | body[i];
  return instant_from_ms(ms);
}

void write_time(Instant time, Body& body) noexcept {
  auto ms = static_cast<std::uint64_t>(to_ms(time));
  for (std::size_t i = kTimeBytes; i-- > 0; ms >>= 8U) body[i] = static_cast<std::uint8_t>(ms);
}

std::optional<IdForm> parse_id(std::string_view id) noexcept {
  if (!claims_signature(id)) return std::nullopt;
  id.remove_prefix(kIdBegin.size());
  IdForm form;
  form.key_id = id.substr(0, id.find('.'));
  if (!is_key_id(form.key_id) || id.size() != form.key_id.size() + 1 + kBodyCharacters) {
    return std::nullopt;
  }
  id.remove_prefix(form.key_id.size() + 1);
  for (std::size_t group = 0; group < kBodyCharacters / 4; ++group) {
    std::uint32_t bits = 0;
    for (const char c : id.substr(4 * group, 4)) {
      if (value_of(c) == kNoDigit) return std::nullopt;
      bits = bits << kBitsPerDigit | value_of(c);
    }
    form.body[3 * group] = static_cast<std::uint8_t>(bits >> 16U);
    form.body[3 * group + 1] = static_cast<std::uint8_t>(bits >> 8U);
    form.body[3 * group + 2] = static_cast<std::uint8_t>(bits);
  }
  return form;
}

std::string write_id(const IdForm& form) {
  std::string id;
  id.reserve(kIdBegin.size() + form.key_id.size() + 1 + kBodyCharacters);
  id.append(kIdBegin).append(form.key_id).push_back('.');
  for (std::size_t at = 0; at < kBodyBytes; at += 3) {
    const std::uint32_t bits = static_cast<std::uint32_t>(form.body[at]) << 16U |
                               static_cast<std::uint32_t>(form.body[at + 1]) << 8U |
                               form.body[at + 2];
    for (unsigned shift = 18;; shift -= kBitsPerDigit) {
      id.push_back(kDigits[bits >> shift & 63U]);
      if (shift == 0) break;
    }
  }
  return id;
}

}  // namespace fcap::signing
