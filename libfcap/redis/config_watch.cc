#include "redis/config_watch.h"

#include <utility>

namespace fcap::redis {

void ConfigWatch::expect(const ExpectedConfig& expected) {
  expected_ = expected;
  key_ = config_key(expected.key_prefix);
  forget();
}

void ConfigWatch::forget() {
  if (key_.empty()) return;
  say_nothing();
  read_.clear();
  has_reply_ = false;
  text_ = "the writer's configuration has not been read since its server was last connected";
}

void ConfigWatch::say_nothing() {
  state_ = ConfigState::kUnknown;
  missing_ = {MissingEvents(kAnyEvent)};
  terms_ = {};
}

bool ConfigWatch::compare_with(const Reply& reply, int database) {
  has_reply_ = true;
  // While a gap is stated it is read every second, by every process, and may be long.
  const bool is_text = reply.kind == Reply::Kind::kString;
  if (is_text && !read_.empty() && reply.text == read_) return false;
  read_ = is_text ? reply.text : std::string_view{};
  const ConfigState state_before = state_;
  const std::string text_before = std::exchange(text_, std::string{});
  set_state_from(reply, database);
  return state_ != state_before || text_ != text_before;
}

void ConfigWatch::set_state_from(const Reply& reply, int database) {
  say_nothing();
  if (reply.kind == Reply::Kind::kNil) {
    // Whoever has emptied the store has taken the updater's statement with it.
    state_ = ConfigState::kMissing;
    text_ = "no updater has written under key_prefix \"" + expected_.key_prefix +
            "\" in database " + std::to_string(database) +
            ", or the store has lost its data since: is this the updater's server, database and "
            "prefix, and does an updater run?";
    return;
  }
  if (reply.kind != Reply::Kind::kString) {
    const bool is_error = reply.kind == Reply::Kind::kError;
    text_ = "the writer's configuration (" + key_ + ") cannot be read: " +
            (is_error ? std::string(reply.text) : "the server does not answer GET with a string");
    return;
  }
  const auto recorded = parse_config(reply.text);
  if (!recorded.ok()) {
    text_ = key_ + ": " + recorded.status().text();
    return;
  }
  missing_ = recorded.value().missing_by_slot();
  terms_ = {.reservation_life_max = recorded.value().reservation_life_max,
            .record_bytes_max = recorded.value().record_bytes_max};
  text_ = config_differences(recorded.value(), expected_);
  state_ = text_.empty() ? ConfigState::kAgrees : ConfigState::kDiffers;
  if (!text_.empty()) text_ = "the updater has other settings: " + text_;
}

}  // namespace fcap::redis
