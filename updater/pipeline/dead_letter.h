#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "events/event_decoder.h"

namespace fcap::updater {

/// A message that will never be written: its bytes, where it stood and why. It owns its bytes,
/// because it is kept until the dead-letter topic has it.
struct DeadLetter {
  std::string payload;
  std::string key;
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::int64_t timestamp_ms = -1;  ///< the broker's; below 0: it has none
  events::Rejection reason = events::Rejection::kNotJson;
  std::string member;  ///< the member at fault, where one is
};

/// Learns whether a dead letter has arrived. Called once, from any thread; must not block.
class DeadLetterCompletion {
 public:
  virtual void delivered(bool ok) noexcept = 0;

 protected:
  ~DeadLetterCompletion() = default;
};

/// Where dead letters go. A message is not done before its dead letter is.
class DeadLetterSink {
 public:
  virtual ~DeadLetterSink() = default;
  /// Starts sending; `letter` lives until `done` has been called, which may happen before the call
  /// returns.
  virtual void send(const DeadLetter& letter, DeadLetterCompletion& done) noexcept = 0;
};

}  // namespace fcap::updater
