#pragma once

#include <string>
#include <string_view>

#include <fcap/status.h>

/// libpq connection strings, in both of their forms: keywords and URIs.
namespace fcap::postgres {

/// Whether libpq can read the string. The error does not show it, since it may hold a password.
Status check_conninfo(const std::string& conninfo);

/// Does the same; the error is libpq's own text, which may quote the string.
Status explain_conninfo(const std::string& conninfo);

/// Whether the string holds a password. False for one that libpq cannot read.
[[nodiscard]] bool has_password(const std::string& conninfo);

/// The string with that password in place of its own. Unchanged if libpq cannot read it.
[[nodiscard]] std::string with_password(const std::string& conninfo, std::string_view password);

/// The string with "(set)" in place of its passwords, to be shown. Empty if libpq cannot read it.
[[nodiscard]] std::string masked(const std::string& conninfo);

}  // namespace fcap::postgres
