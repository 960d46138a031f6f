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

/// The events that are not written.
struct LeftOut {
  std::uint64_t too_old = 0;    ///< before the retention: irrelevant
  std::uint64_t null_user = 0;  ///< no usable user id: irrelevant
  std::uint64_t rejected = 0;
};

/// Decodes messages and says what becomes of each of their events.
///
/// Not thread-safe; neither is the decoder it uses.
class Intake {
 public:
  Intake(events::EventDecoder& decoder, IntakeOptions options);

  /// False: the message must be decoded again later, before the ones after it.
  [[nodiscard]] bool decode(const events::Message& message);

  /// What becomes of the events of the message decoded last, in their order: calls
  /// `write(const events::Event&)` for each that is to be written, and
  /// `reject(const events::Rejected&)` for each that is refused, or for the message as a whole.
  /// Those that are irrelevant are only counted. A message without events counts as null_user.
  template <typename Write, typename Reject>
  void sort_events(const IntakeClocks& clocks, LeftOut& left_out, const Write& write,
                   const Reject& reject) {
    if (refused_) {
      ++left_out.rejected;
      return reject(rejected_);
    }
    if (events_.empty()) ++left_out.null_user;
    for (const events::Event& event : events_) {
      switch (fate_of(event, clocks)) {
        case Fate::kWrite:
          write(event);
          break;
        case Fate::kTooOld:
          ++left_out.too_old;
          break;
        case Fate::kNullUser:
          ++left_out.null_user;
          break;
        case Fate::kReject:
          ++left_out.rejected;
          reject(rejected_);
          break;
      }
    }
  }

 private:
  /// What becomes of one event.
  enum class Fate : std::uint8_t { kWrite, kTooOld, kNullUser, kReject };

  Fate fate_of(const events::Event& event, const IntakeClocks& clocks);
  [[nodiscard]] bool is_null_user(std::string_view user_id) const noexcept;

  events::EventDecoder* decoder_;
  IntakeOptions options_;
  bool refused_ = false;  // the message as a whole
  std::vector<events::Event> events_;
  events::Rejected rejected_;  // why the message was, or the event judged last
};

}  // namespace fcap::updater
