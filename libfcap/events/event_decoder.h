#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "events/event.h"

namespace fcap::events {

/// Why a message is not an event. The words of to_string() appear in the dead-letter topic and
/// metrics.
enum class Rejection : std::uint8_t {
  kNotJson,
  kNotAnObject,
  kMissingMember,
  kWrongType,
  kIdTooLong,
  kBadTimestamp,
  kUnknownType,
  kTooLarge,
  kInFuture,  ///< judged by the updater, which knows the time
  kRefused,   ///< Redis takes nothing for this user; judged by the updater, after it was tried
};
[[nodiscard]] std::string_view to_string(Rejection reason) noexcept;

/// What decode() says of a message that is none.
struct Rejected {
  Rejection reason = Rejection::kNotJson;
  std::string_view member = {};  ///< the member at fault, where one is
};

/// Bytes of one message to an Event. An interface, so that other encodings can follow.
///
/// Not thread-safe; one decoder a thread. Any bytes are safe.
class EventDecoder {
 public:
  virtual ~EventDecoder() = default;
  /// Fills `event` and gives nothing, or says why the message is not an event.
  virtual std::optional<Rejected> decode(std::string_view message, Event& event) noexcept = 0;
};

/// {"user_id":"u123","campaign_id":"c456","timestamp":1700000000,"imp_id":"uuid"}; optional
/// creative_id, type ("impression" by default, "click", "viewable", "conversion", "erasure"),
/// event_id (by default imp_id). docs/events.md is the reference.
[[nodiscard]] std::unique_ptr<EventDecoder> make_json_event_decoder();

}  // namespace fcap::events
