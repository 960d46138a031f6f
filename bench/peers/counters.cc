// Counters instead of events: a check is one command that reads all of them. Each further window of
// a rule is one more counter to write and read.
#include "peers/command_words.h"

namespace fcap::bench {
namespace {

// The month of an instant, UTC, as 202601.
std::int64_t month_of(Instant time) noexcept {
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(time)};
  return static_cast<std::int64_t>(static_cast<int>(date.year())) * 100 +
         static_cast<std::int64_t>(static_cast<unsigned>(date.month()));
}

bool same_month(Instant first, Instant other) noexcept {
  return month_of(first) == month_of(other);
}

// Reads the number at the beginning of `text`. Returns where it ends; null if `text` does not
// begin with a number.
template <typename Number>
const char* read_number(std::string_view text, Number& number) noexcept {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} ? read.ptr : nullptr;
}

class MonthCounters : public Layout {
 public:
  using Layout::Layout;

  bool read(const Question& /*question*/, std::uint32_t /*index*/, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    return read_each(reply, counts, [](const redis::Reply& counter, std::uint32_t& count) {
      return counter.kind == redis::Reply::Kind::kNil ||
             read_number(counter.text, count) == counter.text.data() + counter.text.size();
    });
  }

 protected:
  std::string key_;
};

// One hash per user, a field per campaign and month: the user's counters lie together, so the
// key's overhead is paid once.
class CalendarHash final : public MonthCounters {
 public:
  CalendarHash()
      : MonthCounters({.name = "calendar_hash",
                       .title = "hash per user, counter per month, HMGET",
                       .window = WindowKind::kCalendar,
                       .counts_once = false}) {}

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    const std::string_view key = join(key_, {"h:{", user, "}"});
    std::uint32_t commands = 1;
    for_each_stretch(impressions, same_month, [&](std::span<const Impression> events) {
      const NumberWord month(month_of(events.front().time));
      const std::string_view field = join(field_, {events.front().campaign, ":", month});
      const NumberWord count(static_cast<std::int64_t>(events.size()));
      redis::append_command(wire, {"HINCRBY", key, field, count});
      ++commands;
    });
    redis::append_command(wire, {"EXPIRE", key, kRetentionS});
    return commands;
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    const NumberWord month(month_of(question.now));
    begin_command(wire, {"HMGET", join(key_, {"h:{", question.user, "}"})},
                  question.campaigns.size());
    for (const std::string& campaign : question.campaigns) {
      redis::append_word(wire, join(field_, {campaign, ":", month}));
    }
    return 1;
  }

 private:
  std::string field_;
};

constexpr Script kCountByKey(
    "local n = redis.call('INCRBY', KEYS[1], ARGV[1]) "
    "if n == tonumber(ARGV[1]) then redis.call('EXPIRE', KEYS[1], ARGV[2]) end "
    "return n");

// Each counter is a key of its own: a script counts and sets the expiry with the first event (two
// commands would leave a key without one when the writer dies between them).
class CounterKeys final : public MonthCounters {
 public:
  CounterKeys()
      : MonthCounters({.name = "counter_keys",
                       .title = "counter per user+campaign+month, MGET",
                       .window = WindowKind::kCalendar,
                       .counts_once = false,
                       .scripts = {kCountByKey.text}}) {}

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    std::uint32_t commands = 0;
    for_each_stretch(impressions, same_month, [&](std::span<const Impression> events) {
      const NumberWord month(month_of(events.front().time));
      const std::string_view key =
          join(key_, {"c:{", user, "}:", events.front().campaign, ":", month});
      const NumberWord count(static_cast<std::int64_t>(events.size()));
      redis::append_command(wire, {"EVALSHA", kCountByKey.sha(), "1", key, count, kRetentionS});
      ++commands;
    });
    return commands;
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    const NumberWord month(month_of(question.now));
    begin_command(wire, {"MGET"}, question.campaigns.size());
    for (const std::string& campaign : question.campaigns) {
      redis::append_word(wire, join(key_, {"c:{", question.user, "}:", campaign, ":", month}));
    }
    return 1;
  }
};

// KEYS: hash; ARGV: field, first event's second, events, window in seconds, expiry in seconds.
constexpr Script kCountInWindow(
    "local v, n, opened = redis.call('HGET', KEYS[1], ARGV[1]), 0, tonumber(ARGV[2]) "
    "if v then "
    "  local at = string.find(v, ':', 1, true) "
    "  local was = tonumber(string.sub(v, at + 1)) "
    "  if opened < was + tonumber(ARGV[4]) then "
    "    n = tonumber(string.sub(v, 1, at - 1)) opened = was "
    "  end "
    "end "
    "redis.call('HSET', KEYS[1], ARGV[1], string.format('%d:%d', n + tonumber(ARGV[3]), opened)) "
    "redis.call('EXPIRE', KEYS[1], ARGV[5])");

std::int64_t second_of(Instant time) noexcept {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

// One hash per user, a field per campaign that holds "count:opened" of one fixed window: what a
// hash with an expiry per field (EXHASH, HEXPIRE) gives, on a server without one. The leanest
// layout there is, and the one that can answer least: one window, no history.
class WindowHash final : public Layout {
 public:
  WindowHash()
      : Layout({.name = "window_hash",
                .title = "hash per user, one fixed window, HMGET",
                .window = WindowKind::kFixed,
                .counts_once = false,
                .takes_late = false,
                .scripts = {kCountInWindow.text}}) {}

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    const std::string_view key = join(key_, {"w:{", user, "}"});
    const NumberWord window_s(std::chrono::seconds(kFixedWindow).count());
    std::uint32_t commands = 0;
    const auto same_window = [](Instant a, Instant b) { return b - a < kFixedWindow; };
    for_each_stretch(impressions, same_window, [&](std::span<const Impression> events) {
      const NumberWord first(second_of(events.front().time));
      const NumberWord count(static_cast<std::int64_t>(events.size()));
      redis::append_command(wire, {"EVALSHA", kCountInWindow.sha(), "1", key,
                                   events.front().campaign, first, count, window_s, kRetentionS});
      ++commands;
    });
    return commands;
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    begin_command(wire, {"HMGET", join(key_, {"w:{", question.user, "}"})},
                  question.campaigns.size());
    for (const std::string& campaign : question.campaigns) redis::append_word(wire, campaign);
    return 1;
  }

  bool read(const Question& question, std::uint32_t /*index*/, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    const std::int64_t now_s = second_of(question.now);
    return read_each(reply, counts, [now_s](const redis::Reply& field, std::uint32_t& count) {
      if (field.kind == redis::Reply::Kind::kNil) return true;
      const char* const end = field.text.data() + field.text.size();
      std::uint32_t counted = 0;
      std::int64_t opened_s = 0;
      const char* const colon = read_number(field.text, counted);
      if (colon == nullptr || colon == end || *colon != ':') return false;
      if (read_number({colon + 1, end}, opened_s) != end) return false;
      if (now_s < opened_s + std::chrono::seconds(kFixedWindow).count()) count = counted;
      return true;
    });
  }

 private:
  std::string key_;
};

}  // namespace

std::vector<std::unique_ptr<Layout>> make_peers() {
  std::vector<std::unique_ptr<Layout>> peers;
  peers.push_back(make_zset_layout());
  peers.push_back(make_lua_log_layout());
  peers.push_back(std::make_unique<CounterKeys>());
  peers.push_back(std::make_unique<CalendarHash>());
  peers.push_back(std::make_unique<WindowHash>());
  return peers;
}

}  // namespace fcap::bench
