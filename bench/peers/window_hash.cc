// One hash per user, a field per campaign that holds "count:opened" of one fixed window: what a
// hash with an expiry per field (EXHASH, HEXPIRE) gives, on a server without one. A check is one
// HMGET. The leanest layout there is, and the one that can answer least: one window, no history.
#include "peers/command_words.h"
#include "peers/layout.h"
#include "redis/client.h"
#include "redis/command.h"
#include "redis/sha1.h"

namespace fcap::bench {
namespace {

// KEYS: hash; ARGV: field, first event's second, events, window in seconds, expiry in seconds.
constexpr std::string_view kCount =
    "local v, n, opened = redis.call('HGET', KEYS[1], ARGV[1]), 0, tonumber(ARGV[2]) "
    "if v then "
    "  local at = string.find(v, ':', 1, true) "
    "  local was = tonumber(string.sub(v, at + 1)) "
    "  if opened < was + tonumber(ARGV[4]) then "
    "    n = tonumber(string.sub(v, 1, at - 1)) opened = was "
    "  end "
    "end "
    "redis.call('HSET', KEYS[1], ARGV[1], string.format('%d:%d', n + tonumber(ARGV[3]), opened)) "
    "redis.call('EXPIRE', KEYS[1], ARGV[5])";
constexpr auto kCountSha = redis::sha1_hex(kCount);

std::int64_t second_of(Instant time) noexcept {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

bool same_campaign_and_window(const Impression& a, const Impression& b) noexcept {
  return a.campaign == b.campaign && b.time - a.time < kFixedWindow;
}

class WindowHash final : public Layout {
 public:
  std::string_view name() const override { return "window_hash"; }
  std::string_view title() const override { return "hash per user, one fixed window, HMGET"; }
  WindowKind window() const override { return WindowKind::kFixed; }
  bool counts_once() const override { return false; }
  bool takes_late() const override { return false; }
  std::vector<std::string_view> scripts() const override { return {kCount}; }

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    const std::string_view key = join(key_, {"w:{", user, "}"});
    const std::string_view sha(kCountSha.data(), kCountSha.size());
    const NumberWord window_s(std::chrono::seconds(kFixedWindow).count());
    std::uint32_t commands = 0;
    for_each_stretch(
        impressions, same_campaign_and_window, [&](std::span<const Impression> events) {
          redis::append_command(
              wire, {"EVALSHA", sha, "1", key, events.front().campaign,
                     NumberWord(second_of(events.front().time)),
                     NumberWord(static_cast<std::int64_t>(events.size())), window_s, kRetentionS});
          ++commands;
        });
    return commands;
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    redis::append_word_count(wire, 2 + question.campaigns.size());
    redis::append_word(wire, "HMGET");
    redis::append_word(wire, join(key_, {"w:{", question.user, "}"}));
    for (const std::string& campaign : question.campaigns) redis::append_word(wire, campaign);
    return 1;
  }

  bool read(const Question& question, std::uint32_t /*index*/, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    if (reply.elements.size() != counts.size()) return false;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (!read_field(reply.elements[i], second_of(question.now), counts[i])) return false;
    }
    return true;
  }

 private:
  static bool read_field(const redis::Reply& field, std::int64_t now_s, std::uint32_t& count) {
    if (field.kind == redis::Reply::Kind::kNil) return true;
    const char* const end = field.text.data() + field.text.size();
    std::uint32_t counted = 0;
    std::int64_t opened_s = 0;
    const auto after_count = std::from_chars(field.text.data(), end, counted);
    if (after_count.ptr == end || *after_count.ptr != ':') return false;
    if (std::from_chars(after_count.ptr + 1, end, opened_s).ptr != end) return false;
    if (now_s < opened_s + std::chrono::seconds(kFixedWindow).count()) count = counted;
    return true;
  }

  std::string key_;
};

}  // namespace

std::unique_ptr<Layout> make_window_hash_layout() {
  return std::make_unique<WindowHash>();
}

}  // namespace fcap::bench
