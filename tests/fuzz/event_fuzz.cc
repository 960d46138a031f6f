// The event decoder against nlohmann's parser: of valid documents both must say the same, and what
// nlohmann refuses must not be an event.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "events/event_decoder.h"
#include "events/timestamp.h"

namespace {

using fcap::events::Event;
using fcap::events::Rejected;
using fcap::events::Rejection;

void require(bool condition, std::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "the decoders differ: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

// A DOM that keeps each number's text, since timestamps are judged exactly, and the depth.
class Oracle final : public nlohmann::json_sax<nlohmann::json> {
 public:
  struct Member {
    bool present = false;
    bool null = false;
    bool text = false;
    bool number = false;
    std::string value;
  };

  Member* wanted(const std::string& name) {
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      if (kNames[i] == name) return &members[i];
    }
    return nullptr;
  }
  Member& member(std::string_view name) { return *wanted(std::string(name)); }

  bool null() override { return scalar({.present = true, .null = true}); }
  bool boolean(bool /*value*/) override { return scalar({.present = true}); }
  // The text of an integer is not handed over, but its value is exact.
  bool number_integer(std::int64_t value) override {
    return scalar({.present = true, .number = true, .value = std::to_string(value)});
  }
  bool number_unsigned(std::uint64_t value) override {
    return scalar({.present = true, .number = true, .value = std::to_string(value)});
  }
  bool number_float(double /*value*/, const std::string& text) override {
    return scalar({.present = true, .number = true, .value = text});
  }
  bool string(std::string& value) override {
    return scalar({.present = true, .text = true, .value = value});
  }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return open(true); }
  bool key(std::string& name) override {
    if (depth == 1) current = wanted(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(false); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    // Numbers beyond a double are JSON all the same; 406 says so.
    out_of_range = error.id == 406;
    return false;
  }

  static constexpr std::string_view kNames[] = {"user_id",  "campaign_id", "creative_id", "imp_id",
                                                "event_id", "type",        "timestamp"};
  Member members[std::size(kNames)];
  Member* current = nullptr;
  std::size_t depth = 0;
  std::size_t depth_max = 0;
  bool root_is_object = false;
  bool out_of_range = false;

 private:
  bool scalar(Member member) {
    if (depth == 1 && root_is_object && current != nullptr) *current = std::move(member);
    return true;
  }
  bool open(bool object) {
    if (depth == 0) root_is_object = object;
    scalar({.present = true});
    depth_max = std::max(depth_max, ++depth);
    return true;
  }
  bool close() {
    --depth;
    return true;
  }
};

void compare_event(Oracle& oracle, const Event& event) {
  require(oracle.member("user_id").value == event.user_id, "user_id");
  if (event.kind == Event::Kind::kErasure) {
    require(oracle.member("type").value == "erasure", "type");
  } else {
    require(oracle.member("campaign_id").value == event.campaign_id, "campaign_id");
    require(oracle.member("creative_id").value == event.creative_id, "creative_id");
    const auto& event_id = oracle.member("event_id").value;
    require((event_id.empty() ? oracle.member("imp_id").value : event_id) == event.event_id,
            "event_id");
  }
  const auto time = fcap::events::parse_timestamp(oracle.member("timestamp").value);
  require(time && *time == event.time, "timestamp");
}

void compare_rejection(Oracle& oracle, const Rejected& rejected) {
  const auto has_text = [&](std::string_view name) { return !oracle.member(name).value.empty(); };
  switch (rejected.reason) {
    case Rejection::kMissingMember:
      if (rejected.member == "imp_id") {
        require(!has_text("imp_id") && !has_text("event_id"), "missing imp_id");
      } else if (rejected.member == "user_id") {
        require(!oracle.member("user_id").present, "missing user_id");
      } else {
        require(!has_text(rejected.member), "missing member");
      }
      break;
    case Rejection::kWrongType: {
      const auto& member = oracle.member(rejected.member);
      require(member.present && !member.null, "wrong type of an absent member");
      require(rejected.member == "timestamp" ? !member.number : !member.text, "wrong type");
      break;
    }
    case Rejection::kIdTooLong:
      require(oracle.member(rejected.member).value.size() > 256, "id too long");
      break;
    default:
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<fcap::events::EventDecoder> decoder =
      fcap::events::make_json_event_decoder();
  const std::string_view message(reinterpret_cast<const char*>(data), size);
  Event event;
  const auto rejected = decoder->decode_one(message, event);

  Oracle oracle;
  const bool valid = nlohmann::json::sax_parse(message, &oracle);
  // What nlohmann cannot judge: a byte-order mark, which it skips, NUL, which ends the document for
  // it, and numbers beyond a double.
  if (oracle.out_of_range || message.starts_with("\xef") ||
      message.find('\0') != std::string_view::npos) {
    return 0;
  }
  if (!valid) {
    require(rejected && rejected->reason == Rejection::kNotJson, "an invalid document was taken");
    return 0;
  }
  if (oracle.depth_max > 60) return 0;  // may be refused for its depth
  require(!rejected || rejected->reason != Rejection::kNotJson, "a valid document was refused");
  if (rejected && rejected->reason == Rejection::kNotAnObject) {
    require(!oracle.root_is_object, "an object was called none");
    return 0;
  }
  if (rejected) {
    compare_rejection(oracle, *rejected);
  } else {
    compare_event(oracle, event);
  }
  return 0;
}
