#pragma once

#include <cstdint>
#include <string_view>

#include <fcap/rule.h>
#include <fcap/time.h>

namespace fcap::events {

/// A message of the topic, decoded. The views point into the message or the decoder's buffer and
/// are valid until the decoder's next call.
struct Event {
  enum class Kind : std::uint8_t {
    kSeen,     ///< an impression, click, viewable or conversion
    kErasure,  ///< everything of this user up to and including `time` is to be forgotten
  };
  Kind kind = Kind::kSeen;
  std::string_view user_id;
  std::string_view campaign_id;  ///< empty for an erasure
  std::string_view creative_id;  ///< empty: none
  EventType type = EventType::kImpression;
  std::string_view event_id;
  Instant time;
};

}  // namespace fcap::events
