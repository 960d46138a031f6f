// The layouts that the ledger is compared with.
#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "peers/layout.h"
#include "redis/command.h"
#include "redis/sha1.h"

namespace fcap::bench {
namespace {

// Reads one count. Returns false if the text is not a count.
using ReadCount = bool (*)(const redis::Reply& reply, Instant now, std::uint32_t& count);

using Words = std::vector<std::string>;

Words words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::int64_t seconds_of(Instant time) noexcept {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

// A layout whose commands are texts. A question is one command, in which a word that begins with *
// stands there once per campaign; without such a word, it is a command per campaign. In the words
// stand for a value:
//
//     %u user   %c campaign   %i the event's id   %n how many campaigns
//     %t the event's time or now, in ms   %s in seconds   %m its month, as 202601
//     %x the newest expired time in ms   %b where the sliding window begins, in ms
//     %f the fixed window in seconds   %r the retention in seconds   %1 %2 the scripts' SHA
class Peer final : public Layout {
 public:
  Peer(LayoutTraits traits, const std::vector<std::string>& record, const std::string& ask,
       ReadCount read_count)
      : Layout(std::move(traits)),
        ask_(words_of(ask)),
        by_month_(ask.find("%m") != std::string::npos),
        repeated_(static_cast<std::size_t>(
            std::ranges::count(ask_, '*', [](const std::string& word) { return word.front(); }))),
        read_count_(read_count) {
    for (const std::string& command : record) record_.push_back(words_of(command));
    char number = '1';
    for (const std::string_view script : this->traits().scripts) {
      const auto sha = redis::sha1_hex(script);
      value(number++).assign(sha.data(), sha.size());
    }
    value('f') = std::to_string(std::chrono::seconds(kFixedWindow).count());
    value('r') = kRetentionS;
  }

  void record(redis::Request& request, std::string_view user,
              const PeerImpression& impression) override {
    value('u') = user;
    value('c') = impression.campaign;
    set('i', impression.fingerprint);
    set_times(impression.time);
    for (const Words& words : record_) append_command(request, words);
  }

  void ask(redis::Request& request, const PeerQuestion& question) override {
    const std::size_t campaigns = question.campaigns.size();
    value('u') = question.user;
    set('n', static_cast<std::int64_t>(campaigns));
    set_times(question.now);
    if (repeated_ == 0) {
      for (const std::string& campaign : question.campaigns) {
        value('c') = campaign;
        append_command(request, ask_);
      }
      return;
    }
    ++request.command_count;
    redis::append_word_count(request.wire, ask_.size() - repeated_ + repeated_ * campaigns);
    for (const std::string& word : ask_) {
      if (word.front() != '*') {
        append_word(request.wire, word);
        continue;
      }
      for (const std::string& campaign : question.campaigns) {
        value('c') = campaign;
        append_word(request.wire, std::string_view(word).substr(1));
      }
    }
  }

  bool read(const PeerQuestion& question, std::uint32_t index, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    if (repeated_ == 0) return read_count_(reply, question.now, counts[index]);
    bool all = reply.elements.size() == counts.size();
    for (std::size_t i = 0; all && i < counts.size(); ++i) {
      all = read_count_(reply.elements[i], question.now, counts[i]);
    }
    return all;
  }

 private:
  std::string& value(char name) { return values_[static_cast<unsigned char>(name)]; }
  void set(char name, std::int64_t number) { value(name) = fmt::format_int(number).c_str(); }

  void set_times(Instant time) {
    if (time == time_) return;
    time_ = time;
    set('t', to_ms(time));
    set('s', seconds_of(time));
    if (by_month_) value('m') = fmt::format("{:%Y%m}", time);
    set('x', to_ms(time - kRetention));
    set('b', to_ms(time - kSlidingWindow) + 1);
  }

  void append_command(redis::Request& request, const Words& words) {
    ++request.command_count;
    redis::append_word_count(request.wire, words.size());
    for (const std::string& word : words) append_word(request.wire, word);
  }

  void append_word(std::string& wire, std::string_view word) {
    word_.clear();
    for (auto at = word.find('%'); at != word.npos; at = word.find('%')) {
      word_.append(word.substr(0, at)).append(value(word[at + 1]));
      word.remove_prefix(at + 2);
    }
    redis::append_word(wire, word_.append(word));
  }

  std::vector<Words> record_;
  const Words ask_;
  const bool by_month_;
  const std::size_t repeated_;  // words of ask_ that stand there once per campaign
  const ReadCount read_count_;
  std::array<std::string, 128> values_;  // by their letters
  std::string word_;
  Instant time_;
};

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
  const auto add = [&peers](LayoutTraits traits, const std::vector<std::string>& record,
                            const std::string& ask, ReadCount read) {
    peers.push_back(std::make_unique<Peer>(std::move(traits), record, ask, read));
  };
  // A sorted set per user and campaign: the event's id is the member, its time the score. Exact
  // sliding windows of any length.
  add({.name = "zset", .title = "ZSET per user+campaign, ZCOUNT pipelined"},
      {"ZADD z:{%u}:%c %t %i", "ZREMRANGEBYSCORE z:{%u}:%c -inf %x", "EXPIRE z:{%u}:%c %r"},
      "ZCOUNT z:{%u}:%c %b +inf", read_integer);
  // The same as the sliding log in Lua. One call for all candidates, since ten would enter the
  // script ten times.
  add({.name = "lua_log",
       .title = "Lua sliding log, one EVALSHA per user",
       .scripts = {kRecordInLog, kCountInLogs}},
      {"EVALSHA %1 1 l:{%u}:%c %t %i %x %r"}, "EVALSHA %2 %n *l:{%u}:%c %b", read_integer);
  // Counters instead of events. Each further window of a rule is one more to write and to read.
  add({.name = "counter_keys",
       .title = "counter per user+campaign+month, MGET",
       .window = WindowKind::kCalendar,
       .counts_once = false,
       .scripts = {kCountByKey}},
      {"EVALSHA %1 1 c:{%u}:%c:%m %r"}, "MGET *c:{%u}:%c:%m", read_counter);
  // A user's counters lie together, so the key's overhead is paid once.
  add({.name = "calendar_hash",
       .title = "hash per user, counter per month, HMGET",
       .window = WindowKind::kCalendar,
       .counts_once = false},
      {"HINCRBY h:{%u} %c:%m 1", "EXPIRE h:{%u} %r"}, "HMGET h:{%u} *%c:%m", read_counter);
  // What a hash with an expiry per field (EXHASH, HEXPIRE) gives, on a server without one. The
  // leanest layout there is, and the one that can answer least: one window, no history.
  add({.name = "window_hash",
       .title = "hash per user, one fixed window, HMGET",
       .window = WindowKind::kFixed,
       .counts_once = false,
       .takes_late = false,
       .scripts = {kCountInWindow}},
      {"EVALSHA %1 1 w:{%u} %c %s %f %r"}, "HMGET w:{%u} *%c", read_window);
  return peers;
}

}  // namespace fcap::bench
