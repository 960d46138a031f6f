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

bool complete_get(const Reply& reply, StoreCompletion& done, bool stale) noexcept {
  switch (reply.kind) {
    case Reply::Kind::kString:
      done.complete({.code = StoreCode::kOk, .record = reply.text, .stale = stale});
      return true;
    case Reply::Kind::kNil:
      done.complete({.code = StoreCode::kNotFound, .stale = stale});
      return true;
    case Reply::Kind::kError:
      done.complete({.code = StoreCode::kServerError, .text = reply.text});
      return true;
    case Reply::Kind::kOversized:
      done.complete({.code = StoreCode::kTooLarge,
                     .text =
                         "GET: the value is longer than this client reads "
                         "(RedisOptions::value_bytes_max), or was too much together with others: "
                         "it is not a record of fcap"});
      return true;
    default:
      return false;
  }
}

void StoreOperation::note_failure(const Reply& reply) {
  if (reply.kind != Reply::Kind::kError) {
    misanswered = true;
  } else if (!std::exchange(has_error_, true)) {
    error_ = reply.text;
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
