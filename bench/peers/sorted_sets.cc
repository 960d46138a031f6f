// A sorted set per user and campaign: the event's id is the member, its time the score. Exact
// sliding windows of any length. Once with plain commands, where a check is one ZCOUNT per
// candidate, all of them pipelined; once as the sliding log in Lua, where a script trims and counts
// on the server: one EVALSHA per user for all candidates, since ten calls would enter the script
// ten times.
#include "peers/command_words.h"

namespace fcap::bench {
namespace {

bool always(Instant /*first*/, Instant /*other*/) noexcept {
  return true;
}

void append_members(std::string& wire, std::span<const Impression> events) {
  for (const Impression& event : events) {
    redis::append_word(wire, NumberWord(to_ms(event.time)));
    redis::append_word(wire, NumberWord(event.fingerprint));
  }
}

bool read_integer(const redis::Reply& reply, std::uint32_t& count) {
  count = static_cast<std::uint32_t>(reply.integer);
  return reply.kind == redis::Reply::Kind::kInteger;
}

class Zset final : public Layout {
 public:
  Zset() : Layout({.name = "zset", .title = "ZSET per user+campaign, ZCOUNT pipelined"}) {}

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    std::uint32_t commands = 0;
    for_each_stretch(impressions, always, [&](std::span<const Impression> events) {
      const std::string_view key = join(key_, {"z:{", user, "}:", events.front().campaign});
      begin_command(wire, {"ZADD", key}, 2 * events.size());
      append_members(wire, events);
      const NumberWord expired(to_ms(events.back().time - kRetention));
      redis::append_command(wire, {"ZREMRANGEBYSCORE", key, "-inf", expired});
      redis::append_command(wire, {"EXPIRE", key, kRetentionS});
      commands += 3;
    });
    return commands;
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    const NumberWord since(to_ms(question.now - kSlidingWindow) + 1);
    for (const std::string& campaign : question.campaigns) {
      const std::string_view key = join(key_, {"z:{", question.user, "}:", campaign});
      redis::append_command(wire, {"ZCOUNT", key, since, "+inf"});
    }
    return static_cast<std::uint32_t>(question.campaigns.size());
  }

  bool read(const Question& /*question*/, std::uint32_t index, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    return read_integer(reply, counts[index]);
  }

 private:
  std::string key_;
};

// KEYS: log; ARGV: expiry in seconds, newest expired time, then time and id of each event.
constexpr Script kRecord(
    "for i = 3, #ARGV, 2 do redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1]) end "
    "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2]) "
    "redis.call('EXPIRE', KEYS[1], ARGV[1])");

// KEYS: logs; ARGV: the window's first millisecond.
constexpr Script kCount(
    "local counts = {} "
    "for i = 1, #KEYS do counts[i] = redis.call('ZCOUNT', KEYS[i], ARGV[1], '+inf') end "
    "return counts");

class LuaLog final : public Layout {
 public:
  LuaLog()
      : Layout({.name = "lua_log",
                .title = "Lua sliding log, one EVALSHA per user",
                .scripts = {kRecord.text, kCount.text}}) {}

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    std::uint32_t commands = 0;
    for_each_stretch(impressions, always, [&](std::span<const Impression> events) {
      const std::string_view key = join(key_, {"l:{", user, "}:", events.front().campaign});
      const NumberWord expired(to_ms(events.back().time - kRetention));
      begin_command(wire, {"EVALSHA", kRecord.sha(), "1", key, kRetentionS, expired},
                    2 * events.size());
      append_members(wire, events);
      ++commands;
    });
    return commands;
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    const std::size_t keys = question.campaigns.size();
    begin_command(wire, {"EVALSHA", kCount.sha(), NumberWord(static_cast<std::int64_t>(keys))},
                  keys + 1);
    for (const std::string& campaign : question.campaigns) {
      redis::append_word(wire, join(key_, {"l:{", question.user, "}:", campaign}));
    }
    redis::append_word(wire, NumberWord(to_ms(question.now - kSlidingWindow) + 1));
    return 1;
  }

  bool read(const Question& /*question*/, std::uint32_t /*index*/, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    return read_each(reply, counts, read_integer);
  }

 private:
  std::string key_;
};

}  // namespace

std::unique_ptr<Layout> make_zset_layout() {
  return std::make_unique<Zset>();
}

std::unique_ptr<Layout> make_lua_log_layout() {
  return std::make_unique<LuaLog>();
}

}  // namespace fcap::bench
