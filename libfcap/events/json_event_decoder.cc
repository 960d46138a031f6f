#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <simdjson.h>

#include "events/event_decoder.h"
#include "events/timestamp.h"
#include "ledger/ids.h"

namespace fcap::events {
namespace {

namespace ondemand = simdjson::ondemand;

// Values of members that mean nothing to us are still checked, to this depth.
constexpr int kDepthMax = 64;
constexpr std::size_t kMessageBytesMax = std::size_t{64} << 20;

enum Member : std::size_t {
  kUserId,
  kCampaignId,
  kCreativeId,
  kImpId,
  kEventId,
  kType,
  kTimestamp,
  kMembers
};
constexpr std::array<std::string_view, kMembers> kNames = {
    "user_id", "campaign_id", "creative_id", "imp_id", "event_id", "type", "timestamp"};

enum class ValueKind : std::uint8_t { kNothing, kNull, kText, kNumber, kOther };
struct JsonField {
  ValueKind held = ValueKind::kNothing;
  std::string_view text = {};  // a text's value, a number's token
};
using Slots = std::array<JsonField, kMembers>;

Member member_named(std::string_view name) noexcept {
  std::size_t member = 0;
  while (member < kMembers && kNames[member] != name) ++member;
  return static_cast<Member>(member);
}

// A scalar's token reaches up to the next one, with the white space between.
std::string_view trimmed(std::string_view token) noexcept {
  const std::size_t last = token.find_last_not_of(" \t\r\n");
  return token.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

bool is_literal(std::string_view token) noexcept {
  return token == "true" || token == "false" || token == "null";
}

// simdjson's on-demand parser looks only at what is asked for. Everything is asked for here, so
// that a message is an event only if all of it is JSON.

bool read_value(ondemand::value value, int depth, JsonField& slot) noexcept;

bool read_array(ondemand::array array, int depth) noexcept {
  for (auto element : array) {
    JsonField unused;
    ondemand::value value;
    if (element.get(value) != simdjson::SUCCESS) return false;
    if (!read_value(value, depth + 1, unused)) return false;
  }
  return true;
}

bool read_object(ondemand::object object, int depth, Slots* slots) noexcept {
  for (auto entry : object) {
    ondemand::field field;
    std::string_view name;
    if (std::move(entry).get(field) != simdjson::SUCCESS) return false;
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) return false;
    const Member member = slots == nullptr ? kMembers : member_named(name);
    JsonField slot;
    if (!read_value(field.value(), depth + 1, slot)) return false;
    if (member != kMembers) (*slots)[member] = slot;
  }
  return true;
}

bool read_value(ondemand::value value, int depth, JsonField& slot) noexcept {
  ondemand::json_type type{};
  if (depth > kDepthMax || value.type().get(type) != simdjson::SUCCESS) return false;
  slot.held = ValueKind::kOther;
  switch (type) {
    case ondemand::json_type::string:
      slot.held = ValueKind::kText;
      return value.get_string().get(slot.text) == simdjson::SUCCESS;
    case ondemand::json_type::number:
      slot.held = ValueKind::kNumber;
      slot.text = trimmed(value.raw_json_token());
      return is_json_number(slot.text);
    case ondemand::json_type::null:
      slot.held = ValueKind::kNull;
      return trimmed(value.raw_json_token()) == "null";
    case ondemand::json_type::boolean:
      return is_literal(trimmed(value.raw_json_token()));
    case ondemand::json_type::array: {
      ondemand::array array;
      return value.get_array().get(array) == simdjson::SUCCESS && read_array(array, depth);
    }
    case ondemand::json_type::object: {
      ondemand::object object;
      return value.get_object().get(object) == simdjson::SUCCESS &&
             read_object(object, depth, nullptr);
    }
  }
  return false;
}

// Whether nothing but white space follows what was read.
bool at_end(ondemand::document& document) noexcept {
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

// A document that is no object: whether it is JSON all the same. `end` is the message's.
bool is_other_json(ondemand::document& document, const char* end) noexcept {
  ondemand::json_type type{};
  if (document.type().get(type) != simdjson::SUCCESS) return false;
  if (type == ondemand::json_type::array) {
    ondemand::array array;
    return document.get_array().get(array) == simdjson::SUCCESS && read_array(array, 1) &&
           at_end(document);
  }
  if (type == ondemand::json_type::string) {
    std::string_view text;
    return document.get_string().get(text) == simdjson::SUCCESS && at_end(document);
  }
  std::string_view token;
  if (document.raw_json_token().get(token) != simdjson::SUCCESS) return false;
  // The token reaches to the next one, or to the end where there is none.
  if (token.data() + token.size() != end) return false;
  return is_json_number(trimmed(token)) || is_literal(trimmed(token));
}

// Judges a text member. `slot.text` is empty when it is absent.
std::optional<Rejected> check_text(Slots& slots, Member member) noexcept {
  JsonField& slot = slots[member];
  if (slot.held == ValueKind::kNumber || slot.held == ValueKind::kOther) {
    return Rejected{Rejection::kWrongType, kNames[member]};
  }
  if (slot.text.size() > ledger::kIdBytesMax) {
    return Rejected{Rejection::kIdTooLong, kNames[member]};
  }
  return std::nullopt;
}

struct TypeWord {
  std::string_view word;
  EventType type;
};
constexpr std::array<TypeWord, 4> kTypes = {{{"impression", EventType::kImpression},
                                             {"click", EventType::kClick},
                                             {"viewable", EventType::kViewable},
                                             {"conversion", EventType::kConversion}}};

bool read_type(const JsonField& slot, Event& event) noexcept {
  event.kind = Event::Kind::kSeen;
  event.type = EventType::kImpression;
  if (slot.held != ValueKind::kText) return true;
  if (slot.text == "erasure") {
    event.kind = Event::Kind::kErasure;
    return true;
  }
  const auto* const found = std::ranges::find(kTypes, slot.text, &TypeWord::word);
  if (found == kTypes.end()) return false;
  event.type = found->type;
  return true;
}

std::optional<Rejected> fill(Slots& slots, Event& event) noexcept {
  for (const Member member : {kUserId, kCampaignId, kCreativeId, kImpId, kEventId}) {
    if (auto rejected = check_text(slots, member)) return rejected;
  }
  if (slots[kType].held != ValueKind::kNothing && slots[kType].held != ValueKind::kNull &&
      slots[kType].held != ValueKind::kText) {
    return Rejected{Rejection::kWrongType, kNames[kType]};
  }
  if (!read_type(slots[kType], event)) return Rejected{Rejection::kUnknownType, kNames[kType]};
  const bool seen = event.kind == Event::Kind::kSeen;

  if (slots[kUserId].held == ValueKind::kNothing) {
    return Rejected{Rejection::kMissingMember, kNames[kUserId]};
  }
  event.user_id = slots[kUserId].text;
  event.campaign_id = seen ? slots[kCampaignId].text : std::string_view{};
  event.creative_id = seen ? slots[kCreativeId].text : std::string_view{};
  event.event_id = slots[kEventId].text.empty() ? slots[kImpId].text : slots[kEventId].text;
  if (seen && event.campaign_id.empty()) {
    return Rejected{Rejection::kMissingMember, kNames[kCampaignId]};
  }
  if (seen && event.event_id.empty()) return Rejected{Rejection::kMissingMember, kNames[kImpId]};

  const JsonField& timestamp = slots[kTimestamp];
  if (timestamp.held == ValueKind::kNothing || timestamp.held == ValueKind::kNull) {
    return Rejected{Rejection::kMissingMember, kNames[kTimestamp]};
  }
  if (timestamp.held != ValueKind::kNumber) {
    return Rejected{Rejection::kWrongType, kNames[kTimestamp]};
  }
  const auto time = parse_timestamp(timestamp.text);
  if (!time) return Rejected{Rejection::kBadTimestamp, kNames[kTimestamp]};
  event.time = *time;
  return std::nullopt;
}

class JsonEventDecoder final : public EventDecoder {
 public:
  Decoded decode(const Message& message, std::vector<Event>& events,
                 Rejected& rejected) noexcept override {
    events.resize(1);
    const auto why = decode(message.value, events.front());
    if (!why) return Decoded::kEvents;
    rejected = *why;
    return Decoded::kRejected;
  }

 private:
  std::optional<Rejected> decode(std::string_view message, Event& event) noexcept {
    if (message.size() > kMessageBytesMax) return Rejected{Rejection::kTooLarge};
    // simdjson reads beyond the end of its input, so it gets a copy that has room there.
    if (padded_.size() < message.size() + simdjson::SIMDJSON_PADDING) {
      padded_.resize(2 * message.size() + simdjson::SIMDJSON_PADDING);
    }
    if (!message.empty()) std::memcpy(padded_.data(), message.data(), message.size());

    ondemand::document document;
    if (parser_.iterate(padded_.data(), message.size(), padded_.size()).get(document) !=
        simdjson::SUCCESS) {
      return Rejected{Rejection::kNotJson};
    }
    ondemand::json_type type{};
    if (document.type().get(type) != simdjson::SUCCESS) return Rejected{Rejection::kNotJson};
    if (type != ondemand::json_type::object) {
      const char* const end = padded_.data() + message.size();
      return Rejected{is_other_json(document, end) ? Rejection::kNotAnObject : Rejection::kNotJson};
    }
    Slots slots;
    ondemand::object object;
    if (document.get_object().get(object) != simdjson::SUCCESS || !read_object(object, 1, &slots) ||
        !at_end(document)) {
      return Rejected{Rejection::kNotJson};
    }
    return fill(slots, event);
  }

  ondemand::parser parser_{kMessageBytesMax};
  std::vector<char> padded_;
};

}  // namespace

std::unique_ptr<EventDecoder> make_json_event_decoder() {
  return std::make_unique<JsonEventDecoder>();
}

}  // namespace fcap::events
