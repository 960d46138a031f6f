#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fcap::redis {

/// SHA-1 in lower-case hexadecimal, at compile time: the name that Redis gives a script. Not for
/// security.
///
/// We compute it because SCRIPT LOAD would need one more right in every account, and an answer on
/// each new connection before the first script could be sent.
[[nodiscard]] constexpr std::array<char, 40> sha1_hex(std::string_view text) {
  std::array<std::uint32_t, 5> state = {0x67452301U, 0xEFCDAB89U, 0x98BADCFEU, 0x10325476U,
                                        0xC3D2E1F0U};
  const std::size_t padded = (text.size() + 8) / 64 * 64 + 64;
  const auto byte_at = [&](std::size_t i) -> std::uint32_t {
    if (i < text.size()) return static_cast<unsigned char>(text[i]);
    if (i == text.size()) return 0x80U;
    if (i < padded - 8) return 0U;
    const std::uint64_t bits = std::uint64_t{text.size()} * 8;
    return static_cast<std::uint32_t>(bits >> (8 * (padded - 1 - i))) & 0xFFU;
  };
  for (std::size_t block = 0; block < padded; block += 64) {
    std::array<std::uint32_t, 80> w = {};
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t at = block + 4 * i;
      w[i] = byte_at(at) << 24U | byte_at(at + 1) << 16U | byte_at(at + 2) << 8U | byte_at(at + 3);
    }
    for (std::size_t i = 16; i < 80; ++i) {
      w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    auto [a, b, c, d, e] = state;
    for (std::size_t i = 0; i < 80; ++i) {
      std::uint32_t f = b ^ c ^ d;
      std::uint32_t k = i < 40 ? 0x6ED9EBA1U : 0xCA62C1D6U;
      if (i < 20) {
        f = (b & c) | (~b & d);
        k = 0x5A827999U;
      } else if (i >= 40 && i < 60) {
        f = (b & c) | (b & d) | (c & d);
        k = 0x8F1BBCDCU;
      }
      const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e};
  }
  std::array<char, 40> hex = {};
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const std::uint32_t nibble = state[i / 8] >> (28 - 4 * (i % 8)) & 0xFU;
    hex[i] = "0123456789abcdef"[nibble];
  }
  return hex;
}

}  // namespace fcap::redis
