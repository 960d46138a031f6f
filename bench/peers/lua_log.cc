// The sliding log in Lua: the sorted sets of the ZSET layout, but a script trims and counts on the
// server. One EVALSHA per user for all candidates, and the users' calls are pipelined: ten calls,
// one per candidate, would enter the script ten times.
#include "peers/command_words.h"
#include "peers/layout.h"
#include "redis/client.h"
#include "redis/command.h"
#include "redis/sha1.h"

namespace fcap::bench {
namespace {

// KEYS: log; ARGV: expiry in seconds, newest expired time, then time and id of each event.
constexpr std::string_view kRecord =
    "for i = 3, #ARGV, 2 do redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1]) end "
    "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2]) "
    "redis.call('EXPIRE', KEYS[1], ARGV[1])";
constexpr auto kRecordSha = redis::sha1_hex(kRecord);

// KEYS: logs; ARGV: the window's first millisecond.
constexpr std::string_view kCount =
    "local counts = {} "
    "for i = 1, #KEYS do counts[i] = redis.call('ZCOUNT', KEYS[i], ARGV[1], '+inf') end "
    "return counts";
constexpr auto kCountSha = redis::sha1_hex(kCount);

class LuaLog final : public Layout {
 public:
  std::string_view name() const override { return "lua_log"; }
  std::string_view title() const override { return "Lua sliding log, one EVALSHA per user"; }
  WindowKind window() const override { return WindowKind::kSliding; }
  bool counts_once() const override { return true; }
  bool takes_late() const override { return true; }
  std::vector<std::string_view> scripts() const override { return {kRecord, kCount}; }

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    std::uint32_t commands = 0;
    for_each_stretch(impressions, same_campaign, [&](std::span<const Impression> events) {
      redis::append_word_count(wire, 6 + 2 * events.size());
      redis::append_word(wire, "EVALSHA");
      redis::append_word(wire, {kRecordSha.data(), kRecordSha.size()});
      redis::append_word(wire, "1");
      redis::append_word(wire, join(key_, {"l:{", user, "}:", events.front().campaign}));
      redis::append_word(wire, kRetentionS);
      redis::append_word(wire, NumberWord(to_ms(events.back().time - kRetention)));
      for (const Impression& event : events) {
        redis::append_word(wire, NumberWord(to_ms(event.time)));
        redis::append_word(wire, NumberWord(event.fingerprint));
      }
      ++commands;
    });
    return commands;
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    const auto keys = static_cast<std::int64_t>(question.campaigns.size());
    redis::append_word_count(wire, 4 + question.campaigns.size());
    redis::append_word(wire, "EVALSHA");
    redis::append_word(wire, {kCountSha.data(), kCountSha.size()});
    redis::append_word(wire, NumberWord(keys));
    for (const std::string& campaign : question.campaigns) {
      redis::append_word(wire, join(key_, {"l:{", question.user, "}:", campaign}));
    }
    redis::append_word(wire, NumberWord(to_ms(question.now - kSlidingWindow) + 1));
    return 1;
  }

  bool read(const Question& /*question*/, std::uint32_t /*index*/, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    if (reply.elements.size() != counts.size()) return false;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (reply.elements[i].kind != redis::Reply::Kind::kInteger) return false;
      counts[i] = static_cast<std::uint32_t>(reply.elements[i].integer);
    }
    return true;
  }

 private:
  std::string key_;
};

}  // namespace

std::unique_ptr<Layout> make_lua_log_layout() {
  return std::make_unique<LuaLog>();
}

}  // namespace fcap::bench
