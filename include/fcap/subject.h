#pragma once

#include <string>
#include <string_view>

#include <fcap/cplusplus.h>

namespace fcap {

/// Who is asked about: a user, by the id that events have as `user_id`. Made from a text wherever
/// one is expected. A view into the caller's string, which must outlive the call that it is given
/// to. At most 256 bytes; empty: nobody is known.
struct Subject {
  constexpr Subject() noexcept = default;
  // NOLINTBEGIN(google-explicit-constructor): callers have texts
  constexpr Subject(std::string_view user_id) noexcept : user(user_id) {}
  constexpr Subject(const char* user_id) noexcept : user(user_id) {}
  Subject(const std::string& user_id) noexcept : user(user_id) {}
  // NOLINTEND(google-explicit-constructor)

  std::string_view user;
};

}  // namespace fcap
