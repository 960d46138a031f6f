#include "redis/store_operation.h"

#include <utility>

namespace fcap::redis {

StoreCode store_code(TransportCode code) noexcept {
  switch (code) {
    case TransportCode::kOk:
      return StoreCode::kOk;
    case TransportCode::kTimeout:
      return StoreCode::kTimeout;
    case TransportCode::kUnavailable:
      return StoreCode::kUnavailable;
    case TransportCode::kBreakerOpen:
      return StoreCode::kBreakerOpen;
    case TransportCode::kOverloaded:
      return StoreCode::kOverloaded;
  }
  return StoreCode::kUnavailable;
}

void StoreOperation::note_error(const Reply& reply) {
  if (has_error_) return;
  has_error_ = true;
  if (reply.kind == Reply::Kind::kError) {
    error_ = reply.text;
  } else {
    error_ = "a reply of an unexpected kind";
  }
}

void StoreOperation::complete(const StoreOutcome& outcome) noexcept {
  std::exchange(done_, nullptr)->complete(outcome);
}

void StoreOperation::complete_failed(TransportCode code) noexcept {
  // No text: while the link is down, every check gets here, and all of them would wait for one
  // mutex to copy what health() reports.
  complete({.code = store_code(code)});
}

}  // namespace fcap::redis
