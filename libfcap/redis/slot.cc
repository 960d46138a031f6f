#include <array>

#include "redis/client.h"

namespace fcap::redis {
namespace {

using Table = std::array<std::uint16_t, 256>;

// Table k gives what a byte adds to the CRC of a text in which k more bytes follow it. Four tables
// process four bytes at a time, independently of each other: every request computes a slot.
constexpr std::array<Table, 4> make_crc16_tables() noexcept {
  std::array<Table, 4> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1;
    tables[0][byte] = static_cast<std::uint16_t>(crc);
  }
  for (std::size_t k = 1; k < 4; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = static_cast<std::uint16_t>((crc << 8) ^ tables[0][crc >> 8 & 0xFFU]);
    }
  }
  return tables;
}

constexpr auto kCrc16 = make_crc16_tables();

}  // namespace

std::uint16_t slot_of(std::string_view key) noexcept {
  const auto open = key.find('{');
  if (open != std::string_view::npos) {
    const auto close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  const auto byte = [key](std::size_t i) -> std::uint32_t {
    return static_cast<unsigned char>(key[i]);
  };
  std::uint32_t crc = 0;
  std::size_t i = 0;
  for (; i + 4 <= key.size(); i += 4) {
    crc = kCrc16[3][crc >> 8 ^ byte(i)] ^ kCrc16[2][(crc & 0xFFU) ^ byte(i + 1)] ^
          kCrc16[1][byte(i + 2)] ^ kCrc16[0][byte(i + 3)];
  }
  for (; i < key.size(); ++i) crc = (crc << 8 & 0xFFFFU) ^ kCrc16[0][crc >> 8 ^ byte(i)];
  return static_cast<std::uint16_t>(crc % 16384U);
}

}  // namespace fcap::redis
