#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/time.h>

#include "events/event_decoder.h"

namespace fcap::updater {

struct IntakeOptions {
  std::chrono::milliseconds retention = std::chrono::days{32};
  /// An event further ahead of the local clock than this goes to the dead-letter topic.
  std::chrono::milliseconds future_allowed = std::chrono::minutes{5};
  /// User ids that mean "nobody", besides the empty one: such events are neither kept nor rejected.
  std::vector<std::string> null_user_ids = {"00000000-0000-0000-0000-000000000000"};
  std::size_t message_bytes_max = std::size_t{64} * 1024;
};

/// The clocks that an event is judged by.
struct IntakeClocks {
  Instant local_now;
  /// min(local clock, newest broker timestamp): a clock that runs ahead makes nothing too old.
  Instant trim_now;
};

/// Decodes messages and says what becomes of each.
///
/// Not thread-safe; neither is the decoder it uses.
class Intake {
 public:
  enum class Fate : std::uint8_t {
    kWrite,     ///< `event` is to be written
    kTooOld,    ///< before the retention: irrelevant
    kNullUser,  ///< nobody's: irrelevant
    kReject,    ///< `rejected` says why
  };

  Intake(events::EventDecoder& decoder, IntakeOptions options);

  Fate judge(std::string_view message, const IntakeClocks& clocks);

  /// Of the last kWrite; valid until the next call, and while the message lives.
  [[nodiscard]] const events::Event& event() const noexcept { return event_; }
  /// Of the last kReject.
  [[nodiscard]] const events::Rejected& rejected() const noexcept { return rejected_; }

 private:
  [[nodiscard]] bool is_null_user(std::string_view user_id) const noexcept;

  events::EventDecoder* decoder_;
  IntakeOptions options_;
  events::Event event_;
  events::Rejected rejected_;
};

}  // namespace fcap::updater
