#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fcap/time.h>

#include "ledger/ledger.h"

/// The bytes of a record, shared by the decoder and the encoder: docs/ledger-format.md.
namespace fcap::ledger::format {

static_assert(std::endian::native == std::endian::little,
              "records are little-endian and are read and written by memcpy");

/// What a frame holds. 0 is no tag, so that zeroed bytes are not a record. 6 and 7
/// were meant for other frames before the first release, and never get another meaning.
enum class Tag : std::uint8_t {
  kEntry = 1,
  kRuns = 2,
  kErasedBefore = 3,
  kCompleteSince = 4,
  kReservation = 5,
};

inline constexpr std::size_t kHashBytes = 6;
inline constexpr std::size_t kTimeBytes = 6;
inline constexpr std::size_t kFingerprintBytes = 4;
inline constexpr std::uint64_t kHashMask = (std::uint64_t{1} << 48) - 1;
inline constexpr std::int64_t kTimeMsMax = (std::int64_t{1} << 48) - 1;

/// Flags of entry and runs frames. In both, the low two bits are the event type.
inline constexpr std::uint8_t kTypeMask = 0x03;
inline constexpr std::uint8_t kEntryHasCreative = 0x04;
inline constexpr std::uint8_t kRunsMixedTypes = 0x04;
inline constexpr std::uint8_t kRunsHaveCreatives = 0x08;
inline constexpr unsigned kRunsTimeWidthShift = 4;
/// The time width is three bytes more than this two-bit field says.
inline constexpr std::size_t kTimeWidthMin = 3;
/// Six bytes are the time itself; less is an offset from the frame's base.
inline constexpr std::size_t kTimeWidthAbsolute = 6;
inline constexpr std::uint8_t kRunsReservedFlags = 0xC0;
inline constexpr std::size_t kTimeBaseBytes = 4;

/// A run's nibble holds its length less one; this value says that a varint holds the rest.
inline constexpr std::uint32_t kLengthEscape = 15;

inline constexpr std::size_t kEntryPayloadBytes = 1 + kHashBytes + kTimeBytes + kFingerprintBytes;
inline constexpr std::uint8_t kReservationHasCreative = 0x04;
inline constexpr std::uint8_t kReservationReleased = 0x08;
inline constexpr std::size_t kLifeBytes = 4;
inline constexpr std::size_t kReservationPayloadBytes =
    1 + kHashBytes + kTimeBytes + kFingerprintBytes + kLifeBytes;
/// What the bytes of a reservation's life can hold: 49.7 days.
inline constexpr std::chrono::milliseconds kReservationLifeMax{UINT32_MAX};
inline constexpr std::size_t kMarkerFrameBytes = 2 + kTimeBytes;

/// Odd widths are put together from two loads: a copy into an eight-byte variable would be stored
/// in pieces and read back whole, which stalls.
template <std::size_t kBytes>
[[nodiscard]] inline std::uint64_t load(const char* bytes) noexcept {
  if constexpr (kBytes == 1) {
    return static_cast<std::uint8_t>(*bytes);
  } else if constexpr (kBytes == 2) {
    std::uint16_t value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  } else if constexpr (kBytes == 3) {
    return load<2>(bytes) | load<1>(bytes + 2) << 16U;
  } else if constexpr (kBytes == 4) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  } else {
    static_assert(kBytes > 4 && kBytes <= 8);
    return load<4>(bytes) | load<kBytes - 4>(bytes + 4) << 32U;
  }
}

template <std::size_t kBytes>
inline void store(std::uint64_t value, std::string& out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, kBytes);
}

/// The nearest instant that 48 bits of milliseconds can hold.
[[nodiscard]] constexpr Instant representable(Instant instant) noexcept {
  const auto ms = to_ms(instant);
  return instant_from_ms(ms < 0 ? 0 : ms > kTimeMsMax ? kTimeMsMax : ms);
}

[[nodiscard]] constexpr std::size_t varint_bytes(std::uint64_t value) noexcept {
  std::size_t bytes = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++bytes;
  }
  return bytes;
}

inline void store_varint(std::uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7F) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

enum class VarintCode : std::uint8_t { kOk, kTruncated, kMalformed };

/// Reads an unsigned LEB128 number of at most 32 bits and moves `at` behind it. Longer numbers, and
/// forms longer than need be, are malformed, so that a number has one form only.
[[nodiscard]] inline VarintCode load_varint(const char*& at, const char* end,
                                            std::uint32_t& value) noexcept {
  std::uint64_t result = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (at == end) return VarintCode::kTruncated;
    const auto byte = static_cast<std::uint8_t>(*at++);
    result |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) != 0) continue;
    if ((byte == 0 && shift > 0) || result > UINT32_MAX) return VarintCode::kMalformed;
    value = static_cast<std::uint32_t>(result);
    return VarintCode::kOk;
  }
  return VarintCode::kMalformed;
}

/// How many bytes an index into a frame's dictionary of `creatives` takes.
[[nodiscard]] constexpr std::size_t index_bytes(std::size_t creatives) noexcept {
  return creatives <= 0xFF ? 1 : creatives <= 0xFFFF ? 2 : 4;
}

struct Frame {
  std::uint8_t tag = 0;
  std::string_view payload;
  std::string_view bytes;  ///< the whole frame, header included
};

/// Walks a record frame by frame.
class FrameReader {
 public:
  explicit FrameReader(std::string_view record) noexcept
      : at_(record.data()), end_(record.data() + record.size()) {}

  /// False at the end of the record, or where it cannot be walked any further: then code() says.
  [[nodiscard]] bool next(Frame& frame) noexcept {
    if (at_ == end_ || code_ != DecodeCode::kOk) return false;
    const char* const begin = at_;
    frame.tag = static_cast<std::uint8_t>(*at_++);
    std::uint32_t length = 0;
    const VarintCode varint = load_varint(at_, end_, length);
    if (frame.tag == 0 || varint == VarintCode::kMalformed) return stop(DecodeCode::kMalformed);
    if (varint == VarintCode::kTruncated || length > static_cast<std::size_t>(end_ - at_)) {
      return stop(DecodeCode::kTruncated);
    }
    frame.payload = {at_, length};
    at_ += length;
    frame.bytes = {begin, static_cast<std::size_t>(at_ - begin)};
    return true;
  }

  [[nodiscard]] DecodeCode code() const noexcept { return code_; }

 private:
  bool stop(DecodeCode code) noexcept {
    code_ = code;
    return false;
  }

  const char* at_;
  const char* end_;
  DecodeCode code_ = DecodeCode::kOk;
};

/// Whether this version reads frames with that tag; others are skipped, counted and carried over.
[[nodiscard]] constexpr bool is_known(std::uint8_t tag) noexcept {
  return tag >= static_cast<std::uint8_t>(Tag::kEntry) &&
         tag <= static_cast<std::uint8_t>(Tag::kReservation);
}

}  // namespace fcap::ledger::format
