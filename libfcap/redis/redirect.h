#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis/address.h"

namespace fcap::redis {

/// Where a node of a cluster sends a request about a slot that it does not serve.
struct Redirect {
  enum class Kind : std::uint8_t {
    kMoved,  ///< the slot belongs to that node from now on
    kAsk,    ///< this one request belongs there, after ASKING: the slot is being migrated
  };
  Kind kind = Kind::kMoved;
  std::uint16_t slot = 0;
  std::string host;  ///< a name or a number; empty: the host of the node that answered
  std::uint16_t port = 0;
};

/// Reads "MOVED 3999 10.0.0.5:6381" and "ASK 3999 ::1:6381"; nothing for any other error.
[[nodiscard]] std::optional<Redirect> read_redirect(std::string_view error);

/// The address that a redirect names, which `answered` gave.
[[nodiscard]] Address address_of(const Redirect& redirect, const Address& answered);

}  // namespace fcap::redis
