#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/time.h>

namespace fcap::signing {

/// "fcap1.<key id>.<44 characters>": the characters are base64url of 33 bytes, which are the fields
/// below in this order. 33 bytes fill 44 characters, so that every id has one form only.
inline constexpr std::string_view kIdBegin = "fcap1.";
inline constexpr std::size_t kKeyIdBytesMax = 16;
inline constexpr std::size_t kTimeBytes = 6;
inline constexpr std::size_t kNonceBytes = 7;
inline constexpr std::size_t kOriginBytes = 4;
inline constexpr std::size_t kMacBytes = 16;
inline constexpr std::size_t kBodyBytes = kTimeBytes + kNonceBytes + kOriginBytes + kMacBytes;
inline constexpr std::size_t kBodyCharacters = kBodyBytes / 3 * 4;
static_assert(kBodyBytes % 3 == 0);

using Nonce = std::array<std::uint8_t, kNonceBytes>;
using Body = std::array<std::uint8_t, kBodyBytes>;

/// The parts of a signed id, not verified.
struct IdForm {
  std::string_view key_id;
  Body body{};

  [[nodiscard]] Instant serve_time() const noexcept;
};

[[nodiscard]] bool is_key_id(std::string_view text) noexcept;
/// Whether it begins as signed ids do.
[[nodiscard]] inline bool claims_signature(std::string_view id) noexcept {
  return id.starts_with(kIdBegin);
}
/// None: it is not of this form.
[[nodiscard]] std::optional<IdForm> parse_id(std::string_view id) noexcept;
[[nodiscard]] std::string write_id(const IdForm& form);
/// The most significant byte first; only the low 48 bits.
void write_time(Instant time, Body& body) noexcept;

}  // namespace fcap::signing
