#include "config/utf8.h"

#include <cstddef>
#include <cstdint>

namespace fcap::config {
namespace {

/// How many bytes follow a lead byte, and between which bounds the first of them lies. [Unicode
/// Standard, table 3-7]
struct Lead {
  std::size_t following;
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xBF;
};

constexpr std::size_t kNotALead = 9;

Lead lead_of(std::uint8_t byte) noexcept {
  if (byte < 0x80) return {0};
  if (byte < 0xC2) return {kNotALead};
  if (byte < 0xE0) return {1};
  if (byte == 0xE0) return {2, 0xA0};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte < 0xF0) return {2};
  if (byte == 0xF0) return {3, 0x90};
  if (byte < 0xF4) return {3};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {kNotALead};
}

}  // namespace

bool is_utf8(std::string_view bytes) noexcept {
  for (std::size_t at = 0; at < bytes.size();) {
    const Lead lead = lead_of(static_cast<std::uint8_t>(bytes[at]));
    if (lead.following >= bytes.size() - at) return false;
    for (std::size_t i = 1; i <= lead.following; ++i) {
      const auto byte = static_cast<std::uint8_t>(bytes[at + i]);
      const std::uint8_t least = i == 1 ? lead.second_min : 0x80;
      const std::uint8_t most = i == 1 ? lead.second_max : 0xBF;
      if (byte < least || byte > most) return false;
    }
    at += lead.following + 1;
  }
  return true;
}

}  // namespace fcap::config
