// A counter a user, campaign and month, as a key of its own: a script counts and sets the expiry
// with the first event (two commands would leave a key without one when the writer dies between
// them). A check is one MGET. Each further window of a rule is one more counter to write and read.
#include "peers/command_words.h"
#include "peers/layout.h"
#include "redis/client.h"
#include "redis/command.h"
#include "redis/sha1.h"

namespace fcap::bench {
namespace {

constexpr std::string_view kCount =
    "local n = redis.call('INCRBY', KEYS[1], ARGV[1]) "
    "if n == tonumber(ARGV[1]) then redis.call('EXPIRE', KEYS[1], ARGV[2]) end "
    "return n";
constexpr auto kCountSha = redis::sha1_hex(kCount);

class CounterKeys final : public Layout {
 public:
  std::string_view name() const override { return "counter_keys"; }
  std::string_view title() const override { return "counter per user+campaign+month, MGET"; }
  WindowKind window() const override { return WindowKind::kCalendar; }
  bool counts_once() const override { return false; }
  bool takes_late() const override { return true; }
  std::vector<std::string_view> scripts() const override { return {kCount}; }

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    std::uint32_t commands = 0;
    for_each_stretch(impressions, same_campaign_and_month, [&](std::span<const Impression> events) {
      const std::string_view sha(kCountSha.data(), kCountSha.size());
      const NumberWord month(month_of(events.front().time));
      const std::string_view key =
          join(key_, {"c:{", user, "}:", events.front().campaign, ":", month});
      const NumberWord count(static_cast<std::int64_t>(events.size()));
      redis::append_command(wire, {"EVALSHA", sha, "1", key, count, kRetentionS});
      ++commands;
    });
    return commands;
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    const NumberWord month(month_of(question.now));
    redis::append_word_count(wire, 1 + question.campaigns.size());
    redis::append_word(wire, "MGET");
    for (const std::string& campaign : question.campaigns) {
      redis::append_word(wire, join(key_, {"c:{", question.user, "}:", campaign, ":", month}));
    }
    return 1;
  }

  bool read(const Question& /*question*/, std::uint32_t /*index*/, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    if (reply.elements.size() != counts.size()) return false;
    bool all = true;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      all = read_count(reply.elements[i], counts[i]) && all;
    }
    return all;
  }

 private:
  std::string key_;
};

}  // namespace

std::unique_ptr<Layout> make_counter_keys_layout() {
  return std::make_unique<CounterKeys>();
}

}  // namespace fcap::bench
