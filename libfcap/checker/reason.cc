#include <array>

#include <fcap/reason.h>

namespace fcap {
namespace {

struct Row {
  Reason reason;
  std::string_view word;
  std::string_view sentence;
};

// The one table of reasons, in the order of the enum.
constexpr std::array<Row, kReasonCount> kRows = {{
    {Reason::kPassed, "passed", "no rule stands in the way"},
    {Reason::kCapped, "capped", "a rule stands in the way"},
    {Reason::kDone, "done", "written"},
    {Reason::kRepeated, "repeated",
     "an earlier call with this event id has written it, or the event is recorded"},
    {Reason::kReleased, "released",
     "this event id was released, and cannot be reserved again within a day"},
    {Reason::kIncomplete, "incomplete",
     "a rule reaches back to where events are missing, because the record was trimmed or events "
     "are being read again after a loss, or because an erasure reaches minutes ahead of now"},
    {Reason::kTooMany, "too_many", "the user has 64 live reservations"},
    {Reason::kTooLong, "too_long", "the user's record has no room for reservations"},
    {Reason::kNoConfig, "no_config",
     "the updater's configuration is not in Redis: Redis has lost its data "
     "and no updater has been there since, or this is not the updater's server, database or "
     "key_prefix; or it is in a format that this release does not know: health() has its words"},
    {Reason::kClock, "clock",
     "this machine's clock is more than 10 s away from Redis', or Redis' clock is not known: see "
     "that both are synchronized, and that the account may use TIME"},
    {Reason::kConflict, "conflict",
     "each time, another writer had changed the record since it was read"},
    {Reason::kNoUser, "no_user", "the user id is empty or configured as null"},
    {Reason::kNoRules, "no_rules", "no rule set has been loaded yet"},
    {Reason::kTimeout, "timeout", "the store did not answer before the deadline"},
    {Reason::kUnavailable, "unavailable",
     "the store cannot be reached, or has not been yet, or answered with an error: health() has "
     "its words; the account needs the rights of redis/acl/reader.acl, and for hard calls and "
     "shared notes those of redis/acl/reserver.acl"},
    {Reason::kBreakerOpen, "breaker_open", "the store failed repeatedly and is being left alone"},
    {Reason::kOverloaded, "overloaded", "a bounded queue is full, or memory has run out"},
    {Reason::kUndecodable, "undecodable",
     "the user's record is not one that this version can read"},
    {Reason::kForked, "forked", "this process is a fork of the one that made the Checker"},
    {Reason::kShutdown, "shutdown", "the Checker is being destroyed"},
    {Reason::kReentrant, "reentrant", "a blocking call from inside a callback"},
    {Reason::kInvalid, "invalid",
     "an argument is outside its range: an id over 256 bytes, a candidate without a campaign, an "
     "event id that is empty or there twice, more than 64 of them, or a life that is not above 0; "
     "or the event id belongs to another creative of the campaign, and this impression needs one "
     "of its own"},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].reason != static_cast<Reason>(i)) return false;
  }
  return true;
}
static_assert(is_in_order());

}  // namespace

std::string_view to_string(Reason reason) noexcept {
  const auto at = static_cast<std::size_t>(reason);
  return at < kRows.size() ? kRows[at].word : "unknown";
}

std::string_view describe(Reason reason) noexcept {
  const auto at = static_cast<std::size_t>(reason);
  return at < kRows.size() ? kRows[at].sentence : "unknown";
}

}  // namespace fcap
