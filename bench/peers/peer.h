#pragma once

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "peers/layout.h"
#include "redis/command.h"
#include "redis/sha1.h"

namespace fcap::bench {

/// Reads one count. Returns false if the text is not a count.
using ReadCount = bool (*)(const redis::Reply& reply, Instant now, std::uint32_t& count);

/// Commands as texts. In their words stand for a value:
///
///     %u user   %c campaign   %i the event's id   %n how many campaigns
///     %t the event's time or now, in ms   %s in seconds   %m its month, as 202601
///     %x the newest expired time in ms   %b where the sliding window begins, in ms
///     %f the fixed window in seconds   %r the retention in seconds   %1 %2 the scripts' SHA
struct PeerCommands {
  std::vector<std::string_view> record;
  std::string_view ask;       ///< empty: `ask_each` is a command by itself, for each campaign
  std::string_view ask_each;  ///< words for each campaign
  std::string_view ask_end = {};
};

using Words = std::vector<std::string_view>;

inline Words words_of(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return words;
}

inline std::int64_t seconds_of(Instant time) noexcept {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

/// The month of an instant, UTC, as 202601.
inline std::int64_t month_of(Instant time) noexcept {
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(time)};
  return static_cast<std::int64_t>(static_cast<int>(date.year())) * 100 +
         static_cast<std::int64_t>(static_cast<unsigned>(date.month()));
}

/// A layout that is made of such commands.
class Peer final : public Layout {
 public:
  Peer(LayoutTraits traits, const PeerCommands& commands, ReadCount read_count)
      : Layout(std::move(traits)),
        ask_(words_of(commands.ask)),
        ask_each_(words_of(commands.ask_each)),
        ask_end_(words_of(commands.ask_end)),
        read_count_(read_count) {
    for (const std::string_view command : commands.record) record_.push_back(words_of(command));
    char number = '1';
    for (const std::string_view script : this->traits().scripts) {
      const auto sha = redis::sha1_hex(script);
      value(number++).assign(sha.data(), sha.size());
    }
    value('f') = std::to_string(std::chrono::seconds(kFixedWindow).count());
    value('r') = kRetentionS;
  }

  std::uint32_t record(std::string& wire, std::string_view user,
                       const Impression& impression) override {
    value('u') = user;
    value('c') = impression.campaign;
    set('i', impression.fingerprint);
    set_times(impression.time);
    for (const Words& words : record_) {
      redis::append_word_count(wire, words.size());
      append_words(wire, words);
    }
    return static_cast<std::uint32_t>(record_.size());
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    const std::size_t campaigns = question.campaigns.size();
    value('u') = question.user;
    set('n', static_cast<std::int64_t>(campaigns));
    set_times(question.now);
    if (!ask_.empty()) {
      redis::append_word_count(wire, ask_.size() + campaigns * ask_each_.size() + ask_end_.size());
      append_words(wire, ask_);
    }
    for (const std::string& campaign : question.campaigns) {
      value('c') = campaign;
      if (ask_.empty()) redis::append_word_count(wire, ask_each_.size());
      append_words(wire, ask_each_);
    }
    append_words(wire, ask_end_);
    return ask_.empty() ? static_cast<std::uint32_t>(campaigns) : 1;
  }

  bool read(const Question& question, std::uint32_t index, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    if (ask_.empty()) return read_count_(reply, question.now, counts[index]);
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
    set('m', month_of(time));
    set('x', to_ms(time - kRetention));
    set('b', to_ms(time - kSlidingWindow) + 1);
  }

  void append_words(std::string& wire, const Words& words) {
    for (const std::string_view word : words) {
      word_.clear();
      for (std::size_t i = 0; i < word.size(); ++i) {
        if (word[i] == '%') {
          word_ += value(word[++i]);
        } else {
          word_ += word[i];
        }
      }
      redis::append_word(wire, word_);
    }
  }

  std::vector<Words> record_;
  const Words ask_;
  const Words ask_each_;
  const Words ask_end_;
  const ReadCount read_count_;
  std::array<std::string, 128> values_;  // by their letters
  std::string word_;
  Instant time_;
};

}  // namespace fcap::bench
