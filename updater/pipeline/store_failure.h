#pragma once

#include <string>
#include <string_view>

#include <fcap/store.h>

namespace fcap::updater {

/// Why an operation failed, for logs and /readyz; with the server's own words, where it has any.
[[nodiscard]] std::string describe_failure(StoreCode code, std::string_view server_text);

}  // namespace fcap::updater
