#include "updater/pipeline/store_failure.h"

#include <fmt/format.h>

namespace fcap::updater {
namespace {

std::string_view failure_word(StoreCode code) noexcept {
  switch (code) {
    case StoreCode::kOk:
      return "ok";
    case StoreCode::kNotFound:
      return "not found";
    case StoreCode::kConflict:
      return "conflict";
    case StoreCode::kTimeout:
      return "timed out";
    case StoreCode::kUnavailable:
      return "not connected";
    case StoreCode::kBreakerOpen:
      return "breaker open";
    case StoreCode::kOverloaded:
      return "queue full";
    case StoreCode::kServerError:
      return "refused by the server";
    case StoreCode::kTooLarge:
      return "longer than any record";
  }
  return "unknown";
}

}  // namespace

std::string describe_failure(StoreCode code, std::string_view server_text) {
  if (server_text.empty()) return std::string(failure_word(code));
  return fmt::format("{}: {}", failure_word(code), server_text);
}

}  // namespace fcap::updater
