#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcap/check_token.h>

namespace fcap::checker {

/// A record as a check has read it from the master.
struct KeptRecord {
  std::string user;
  /// nullopt: there was none.
  std::optional<std::string> bytes;
};

/// What a check has seen of the user's record: what is in a CheckToken.
struct SeenRecord {
  bool known = false;              ///< the record was read; without a record, the rest is 0
  std::uint32_t bytes = 0;         ///< how long it is
  std::uint32_t reservations = 0;  ///< how many are live

  /// `kept` may be null.
  [[nodiscard]] CheckToken token(std::shared_ptr<const KeptRecord> kept = nullptr) const noexcept {
    CheckToken token;
    token.is_known_ = known;
    token.bytes_ = bytes;
    token.reservations_ = reservations;
    token.kept_ = std::move(kept);
    return token;
  }
  [[nodiscard]] static SeenRecord of(const CheckToken& token) noexcept {
    return {.known = token.is_known_, .bytes = token.bytes_, .reservations = token.reservations_};
  }
  /// Null: the token has no record, or that of another user.
  [[nodiscard]] static const KeptRecord* kept_in(const CheckToken& token,
                                                 std::string_view user) noexcept {
    const KeptRecord* const kept = token.kept_.get();
    return kept != nullptr && kept->user == user ? kept : nullptr;
  }
};

}  // namespace fcap::checker
