// URLs of Redis: any bytes are safe, and the addresses that they give can be read.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <fcap/redis_url.h>

#include "redis/redis_options_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto options = fcap::parse_redis_url(text);
  if (!options.ok()) {
    if (options.status().text().empty()) std::abort();
    return 0;
  }
  const auto checked = fcap::redis::check_options(options.value());
  // A user without a password is the caller's to complete.
  if (!checked.ok() && options.value().user.empty()) std::abort();
  return 0;
}
