#include "checker/reserve_reason.h"

#include <array>

#include <fcap/reserve.h>

namespace fcap {
namespace {

struct Words {
  std::string_view word;
  std::string_view sentence;
};

// In the order of ReserveReason.
constexpr std::array<Words, kReserveReasonCount> kWords = {{
    {"done", "written"},
    {"repeated", "an earlier call with this event id has written it, or the event is recorded"},
    {"capped", "a rule stands in the way"},
    {"released", "this event id was released, and cannot be reserved again within a day"},
    {"incomplete",
     "a rule reaches back to where events are missing, because the record was trimmed or events "
     "are being read again after a loss, or because an erasure reaches minutes ahead of now"},
    {"too_many", "the user has 64 live reservations"},
    {"too_long", "the user's record has no room for reservations"},
    {"no_config",
     "the updater's configuration is not in Redis: Redis has lost its data "
     "and no updater has been there since, or this is not the updater's server, database or "
     "key_prefix; or it is in a format that this release does not know: health() has its words"},
    {"clock",
     "this machine's clock is more than 10 s away from Redis', or Redis' clock is not known: see "
     "that both are synchronized, and that the account may use TIME"},
    {"conflict", "each time, another writer had changed the record since it was read"},
    {"no_user", "the user id is empty or configured as null"},
    {"no_rules", "no rule set has been loaded yet"},
    {"timeout", "the store did not answer before the deadline"},
    {"unavailable",
     "the store cannot be reached, or has not been yet, or answered with an error: health() has "
     "its words; the account needs the rights of redis/acl/reserver.acl"},
    {"breaker_open", "the store failed repeatedly and is being left alone"},
    {"overloaded", "a bounded queue is full, or memory has run out"},
    {"undecodable", "the user's record is not one that this version can read"},
    {"forked", "this process is a fork of the one that made the Checker"},
    {"shutdown", "the Checker is being destroyed"},
    {"reentrant", "a blocking call from inside a callback"},
    {"invalid",
     "an argument is outside its range: an id over 256 bytes or empty, two equal event ids, more "
     "than 64 of them, or a life that is not above 0; or the event id belongs to another creative "
     "of the campaign, and this impression needs one of its own"},
}};

}  // namespace

std::string_view to_string(ReserveReason reason) noexcept {
  const auto at = static_cast<std::size_t>(reason);
  return at < kWords.size() ? kWords[at].word : "unknown";
}

std::string_view describe(ReserveReason reason) noexcept {
  const auto at = static_cast<std::size_t>(reason);
  return at < kWords.size() ? kWords[at].sentence : "unknown";
}

namespace checker {

ReserveReason reserve_reason(Reason reason) noexcept {
  switch (reason) {
    case Reason::kPassed:
      return ReserveReason::kDone;
    case Reason::kCapped:
      return ReserveReason::kCapped;
    case Reason::kNoUser:
      return ReserveReason::kNoUser;
    case Reason::kNoRules:
      return ReserveReason::kNoRules;
    case Reason::kTimeout:
      return ReserveReason::kTimeout;
    case Reason::kUnavailable:
      return ReserveReason::kUnavailable;
    case Reason::kBreakerOpen:
      return ReserveReason::kBreakerOpen;
    case Reason::kOverloaded:
      return ReserveReason::kOverloaded;
    case Reason::kUndecodable:
      return ReserveReason::kUndecodable;
    case Reason::kForked:
      return ReserveReason::kForked;
    case Reason::kShutdown:
      return ReserveReason::kShutdown;
    case Reason::kReentrant:
      return ReserveReason::kReentrant;
    case Reason::kInvalid:
      return ReserveReason::kInvalid;
  }
  return ReserveReason::kUnavailable;
}

}  // namespace checker
}  // namespace fcap
