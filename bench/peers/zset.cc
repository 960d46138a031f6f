// A sorted set per user and campaign: the event's id is the member, its time the score. Exact
// sliding windows of any length. A check is one ZCOUNT per candidate, all of them pipelined.
#include "peers/command_words.h"
#include "peers/layout.h"
#include "redis/client.h"
#include "redis/command.h"

namespace fcap::bench {
namespace {

class Zset final : public Layout {
 public:
  std::string_view name() const override { return "zset"; }
  std::string_view title() const override { return "ZSET per user+campaign, ZCOUNT pipelined"; }
  WindowKind window() const override { return WindowKind::kSliding; }
  bool counts_once() const override { return true; }
  bool takes_late() const override { return true; }

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    std::uint32_t commands = 0;
    for_each_stretch(impressions, same_campaign, [&](std::span<const Impression> events) {
      const std::string_view key = join(key_, {"z:{", user, "}:", events.front().campaign});
      redis::append_word_count(wire, 2 + 2 * events.size());
      redis::append_word(wire, "ZADD");
      redis::append_word(wire, key);
      for (const Impression& event : events) {
        redis::append_word(wire, NumberWord(to_ms(event.time)));
        redis::append_word(wire, NumberWord(event.fingerprint));
      }
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
    if (reply.kind != redis::Reply::Kind::kInteger) return false;
    counts[index] = static_cast<std::uint32_t>(reply.integer);
    return true;
  }

 private:
  std::string key_;
};

}  // namespace

std::unique_ptr<Layout> make_zset_layout() {
  return std::make_unique<Zset>();
}

}  // namespace fcap::bench
