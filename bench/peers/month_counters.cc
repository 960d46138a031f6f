// A counter per user, campaign and month, in two layouts. A check is one command that reads all of
// them. Each further window of a rule is one more counter to write and read.
#include "peers/command_words.h"
#include "peers/layout.h"
#include "redis/client.h"
#include "redis/command.h"
#include "redis/sha1.h"

namespace fcap::bench {
namespace {

class MonthCounters : public Layout {
 public:
  WindowKind window() const override { return WindowKind::kCalendar; }
  bool counts_once() const override { return false; }
  bool takes_late() const override { return true; }

  bool read(const Question& /*question*/, std::uint32_t /*index*/, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    if (reply.elements.size() != counts.size()) return false;
    bool all = true;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      all = read_count(reply.elements[i], counts[i]) && all;
    }
    return all;
  }

 protected:
  std::string key_;
};

/// One hash per user, a field per campaign and month: the user's counters lie together, so the
/// key's overhead is paid once.
class CalendarHash final : public MonthCounters {
 public:
  std::string_view name() const override { return "calendar_hash"; }
  std::string_view title() const override { return "hash per user, counter per month, HMGET"; }

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    const std::string_view key = join(key_, {"h:{", user, "}"});
    std::uint32_t commands = 1;
    for_each_stretch(impressions, same_campaign_and_month, [&](std::span<const Impression> events) {
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
    redis::append_word_count(wire, 2 + question.campaigns.size());
    redis::append_word(wire, "HMGET");
    redis::append_word(wire, join(key_, {"h:{", question.user, "}"}));
    for (const std::string& campaign : question.campaigns) {
      redis::append_word(wire, join(field_, {campaign, ":", month}));
    }
    return 1;
  }

 private:
  std::string field_;
};

constexpr std::string_view kCountByKey =
    "local n = redis.call('INCRBY', KEYS[1], ARGV[1]) "
    "if n == tonumber(ARGV[1]) then redis.call('EXPIRE', KEYS[1], ARGV[2]) end "
    "return n";
constexpr auto kCountByKeySha = redis::sha1_hex(kCountByKey);

/// Each counter is a key of its own: a script counts and sets the expiry with the first event (two
/// commands would leave a key without one when the writer dies between them).
class CounterKeys final : public MonthCounters {
 public:
  std::string_view name() const override { return "counter_keys"; }
  std::string_view title() const override { return "counter per user+campaign+month, MGET"; }
  std::vector<std::string_view> scripts() const override { return {kCountByKey}; }

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    std::uint32_t commands = 0;
    for_each_stretch(impressions, same_campaign_and_month, [&](std::span<const Impression> events) {
      const std::string_view sha(kCountByKeySha.data(), kCountByKeySha.size());
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
};

}  // namespace

std::unique_ptr<Layout> make_calendar_hash_layout() {
  return std::make_unique<CalendarHash>();
}

std::unique_ptr<Layout> make_counter_keys_layout() {
  return std::make_unique<CounterKeys>();
}

}  // namespace fcap::bench
