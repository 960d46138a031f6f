#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/time.h>

#include "events/event_decoder.h"
#include "events/signature_check.h"

namespace fcap::updater {

struct IntakeOptions {
  std::chrono::milliseconds retention = kDefaultRetention;
  /// An event further ahead of every clock than this goes to the dead-letter topic.
  std::chrono::milliseconds future_allowed = std::chrono::minutes{5};
  /// User ids that mean "nobody", besides the empty one: such events are neither kept nor rejected.
  std::vector<std::string> null_user_ids = {kNullUserId};
  std::size_t message_bytes_max = std::size_t{64} * 1024;
  /// Null: ids are not verified.
  std::shared_ptr<const events::SignatureCheck> signatures = nullptr;
};

/// What an event's time is compared with: the latest and the earliest of three clocks (this host's,
/// Redis' and the broker's), so that one wrong clock neither rejects nor drops an event that
/// counts. A replay uses this host's clock alone.
struct IntakeClocks {
  Instant latest;    ///< an event further ahead of it than is allowed is in the future
  Instant earliest;  ///< an event that the retention has passed by this clock is too old
};

/// Decodes messages and says what becomes of each.
///
/// Not thread-safe; neither is the decoder it uses.
class Intake {
 public:
  enum class Fate : std::uint8_t {
    kWrite,     ///< `event` is to be written
    kTooOld,    ///< before the retention: irrelevant
    kNullUser,  ///< no usable user id: irrelevant
    kReject,    ///< `rejected` says why
    kNotYet,    ///< the message must be classified again later, before the ones after it
  };

  Intake(events::EventDecoder& decoder, IntakeOptions options);

  /// What becomes of a message, or of the first of its events; a message without events counts as
  /// kNullUser.
  Fate classify(const events::Message& message, const IntakeClocks& clocks);
  /// Whether the message has more events: classify_next() says what becomes of the next.
  [[nodiscard]] bool more() const noexcept { return next_ < events_.size(); }
  Fate classify_next(const IntakeClocks& clocks);

  /// Of the last kWrite; valid until the next message, and while this one lives.
  [[nodiscard]] const events::Event& event() const noexcept { return events_[next_ - 1]; }
  /// Of the last kReject.
  [[nodiscard]] const events::Rejected& rejected() const noexcept { return rejected_; }

 private:
  [[nodiscard]] bool is_null_user(std::string_view user_id) const noexcept;

  events::EventDecoder* decoder_;
  IntakeOptions options_;
  std::vector<events::Event> events_;
  std::size_t next_ = 0;  // of events_, the first that was not classified
  events::Rejected rejected_;
};

}  // namespace fcap::updater
