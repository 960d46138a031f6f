// The layouts that the ledger is compared with.
#include <charconv>

#include "peers/peer.h"

namespace fcap::bench {
namespace {

// Reads the number at the beginning of `text`. Returns where it ends; null if `text` does not
// begin with a number.
template <typename Number>
const char* read_number(std::string_view text, Number& number) noexcept {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} ? read.ptr : nullptr;
}

bool read_integer(const redis::Reply& reply, Instant /*now*/, std::uint32_t& count) {
  count = static_cast<std::uint32_t>(reply.integer);
  return reply.kind == redis::Reply::Kind::kInteger;
}

bool read_counter(const redis::Reply& reply, Instant /*now*/, std::uint32_t& count) {
  return reply.kind == redis::Reply::Kind::kNil ||
         read_number(reply.text, count) == reply.text.data() + reply.text.size();
}

// "count:opened" of a fixed window.
bool read_window(const redis::Reply& reply, Instant now, std::uint32_t& count) {
  if (reply.kind == redis::Reply::Kind::kNil) return true;
  const char* const end = reply.text.data() + reply.text.size();
  std::uint32_t counted = 0;
  std::int64_t opened_s = 0;
  const char* const colon = read_number(reply.text, counted);
  if (colon == nullptr || colon == end || *colon != ':') return false;
  if (read_number({colon + 1, end}, opened_s) != end) return false;
  if (seconds_of(now) < opened_s + std::chrono::seconds(kFixedWindow).count()) count = counted;
  return true;
}

// KEYS: log; ARGV: time and id of the event, newest expired time, expiry in seconds.
constexpr std::string_view kRecordInLog =
    "redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2]) "
    "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3]) "
    "redis.call('EXPIRE', KEYS[1], ARGV[4])";

// KEYS: logs; ARGV: the window's first millisecond.
constexpr std::string_view kCountInLogs =
    "local counts = {} "
    "for i = 1, #KEYS do counts[i] = redis.call('ZCOUNT', KEYS[i], ARGV[1], '+inf') end "
    "return counts";

// The expiry is set with the first event. (Two commands would leave a key without one when the
// writer dies between them.)
constexpr std::string_view kCountByKey =
    "if redis.call('INCR', KEYS[1]) == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end";

// KEYS: hash; ARGV: field, the event's second, window in seconds, expiry in seconds.
constexpr std::string_view kCountInWindow =
    "local v, n, opened = redis.call('HGET', KEYS[1], ARGV[1]), 0, tonumber(ARGV[2]) "
    "if v then "
    "  local at = string.find(v, ':', 1, true) "
    "  local was = tonumber(string.sub(v, at + 1)) "
    "  if opened < was + tonumber(ARGV[3]) then "
    "    n = tonumber(string.sub(v, 1, at - 1)) opened = was "
    "  end "
    "end "
    "redis.call('HSET', KEYS[1], ARGV[1], string.format('%d:%d', n + 1, opened)) "
    "redis.call('EXPIRE', KEYS[1], ARGV[4])";

}  // namespace

std::vector<std::unique_ptr<Layout>> make_peers() {
  std::vector<std::unique_ptr<Layout>> peers;
  const auto add = [&peers](LayoutTraits traits, const PeerCommands& commands, ReadCount read) {
    peers.push_back(std::make_unique<Peer>(std::move(traits), commands, read));
  };
  // A sorted set per user and campaign: the event's id is the member, its time the score. Exact
  // sliding windows of any length.
  add({.name = "zset", .title = "ZSET per user+campaign, ZCOUNT pipelined"},
      {.record = {"ZADD z:{%u}:%c %t %i", "ZREMRANGEBYSCORE z:{%u}:%c -inf %x",
                  "EXPIRE z:{%u}:%c %r"},
       .ask = "",
       .ask_each = "ZCOUNT z:{%u}:%c %b +inf"},
      read_integer);
  // The same as the sliding log in Lua. One call for all candidates, since ten would enter the
  // script ten times.
  add({.name = "lua_log",
       .title = "Lua sliding log, one EVALSHA per user",
       .scripts = {kRecordInLog, kCountInLogs}},
      {.record = {"EVALSHA %1 1 l:{%u}:%c %t %i %x %r"},
       .ask = "EVALSHA %2 %n",
       .ask_each = "l:{%u}:%c",
       .ask_end = "%b"},
      read_integer);
  // Counters instead of events. Each further window of a rule is one more to write and to read.
  add({.name = "counter_keys",
       .title = "counter per user+campaign+month, MGET",
       .window = WindowKind::kCalendar,
       .counts_once = false,
       .scripts = {kCountByKey}},
      {.record = {"EVALSHA %1 1 c:{%u}:%c:%m %r"}, .ask = "MGET", .ask_each = "c:{%u}:%c:%m"},
      read_counter);
  // A user's counters lie together, so the key's overhead is paid once.
  add({.name = "calendar_hash",
       .title = "hash per user, counter per month, HMGET",
       .window = WindowKind::kCalendar,
       .counts_once = false},
      {.record = {"HINCRBY h:{%u} %c:%m 1", "EXPIRE h:{%u} %r"},
       .ask = "HMGET h:{%u}",
       .ask_each = "%c:%m"},
      read_counter);
  // What a hash with an expiry per field (EXHASH, HEXPIRE) gives, on a server without one. The
  // leanest layout there is, and the one that can answer least: one window, no history.
  add({.name = "window_hash",
       .title = "hash per user, one fixed window, HMGET",
       .window = WindowKind::kFixed,
       .counts_once = false,
       .takes_late = false,
       .scripts = {kCountInWindow}},
      {.record = {"EVALSHA %1 1 w:{%u} %c %s %f %r"}, .ask = "HMGET w:{%u}", .ask_each = "%c"},
      read_window);
  return peers;
}

}  // namespace fcap::bench
