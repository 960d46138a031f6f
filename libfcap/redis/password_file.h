#pragma once

#include <string>

#include <fcap/status.h>

namespace fcap::redis {

/// The password that a file holds, without the line ends behind it. An empty one is an error: it
/// would be sent as no password at all. `setting` named the file; errors begin with it. kNotFound:
/// the file cannot be read; kCorrupt: it holds no password.
[[nodiscard]] Result<std::string> read_password(const std::string& setting,
                                                const std::string& path);

}  // namespace fcap::redis
