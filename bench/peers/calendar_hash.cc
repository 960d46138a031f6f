// One hash a user, a field a campaign and month: the user's counters lie together, so the key's
// overhead is paid once. A check is one HMGET. Each further window of a rule is one more field to
// write and read.
#include "peers/command_words.h"
#include "peers/layout.h"
#include "redis/client.h"
#include "redis/command.h"

namespace fcap::bench {
namespace {

class CalendarHash final : public Layout {
 public:
  std::string_view name() const override { return "calendar_hash"; }
  std::string_view title() const override { return "hash per user, counter a month, HMGET"; }
  WindowKind window() const override { return WindowKind::kCalendar; }
  bool counts_once() const override { return false; }
  bool takes_late() const override { return true; }

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
  std::string field_;
};

}  // namespace

std::unique_ptr<Layout> make_calendar_hash_layout() {
  return std::make_unique<CalendarHash>();
}

}  // namespace fcap::bench
