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

void complete_get(const Reply& reply, StoreCompletion& done, bool stale) noexcept {
  switch (reply.kind) {
    case Reply::Kind::kString:
      return done.complete({.code = StoreCode::kOk, .record = reply.text, .stale = stale});
    case Reply::Kind::kNil:
      return done.complete({.code = StoreCode::kNotFound, .stale = stale});
    case Reply::Kind::kError:
      return done.complete({.code = StoreCode::kServerError, .text = reply.text});
    case Reply::Kind::kOversized:
      return done.complete({.code = StoreCode::kTooLarge,
                            .text =
                                "GET: the value is longer than this client reads "
                                "(RedisOptions::value_bytes_max), or was too much together with "
                                "others: it is not a record of fcap"});
    default:
      return done.complete(
          {.code = StoreCode::kServerError, .text = "GET: a reply of unexpected kind"});
  }
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
