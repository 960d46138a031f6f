#include "updater/pipeline/intake.h"

#include <algorithm>
#include <utility>

namespace fcap::updater {

Intake::Intake(events::EventDecoder& decoder, IntakeOptions options)
    : decoder_(&decoder), options_(std::move(options)) {}

bool Intake::is_null_user(std::string_view user_id) const noexcept {
  return user_id.empty() || std::find(options_.null_user_ids.begin(), options_.null_user_ids.end(),
                                      user_id) != options_.null_user_ids.end();
}

Intake::Fate Intake::classify(const events::Message& message, const IntakeClocks& clocks) {
  events_.clear();
  next_ = 0;
  if (message.value.size() > options_.message_bytes_max) {
    rejected_ = {events::Rejection::kTooLarge, {}};
    return Fate::kReject;
  }
  switch (decoder_->decode(message, events_, rejected_)) {
    case events::Decoded::kRejected:
      events_.clear();
      return Fate::kReject;
    case events::Decoded::kNotYet:
      events_.clear();
      return Fate::kNotYet;
    case events::Decoded::kEvents:
      break;
  }
  return events_.empty() ? Fate::kNullUser : classify_next(clocks);
}

Intake::Fate Intake::classify_next(const IntakeClocks& clocks) {
  const events::Event& event = events_[next_++];
  // Before the clocks: events of null users need no dead letter, whatever their time.
  if (is_null_user(event.user_id)) return Fate::kNullUser;
  if (event.time > clocks.latest + options_.future_allowed) {
    rejected_ = {events::Rejection::kInFuture, "timestamp"};
    return Fate::kReject;
  }
  if (event.time <= clocks.earliest - options_.retention) return Fate::kTooOld;
  // Last: keys need not be kept for events that are older than the retention.
  if (options_.signatures) {
    if (const auto refused = options_.signatures->refusal_of(event)) {
      rejected_ = *refused;
      return Fate::kReject;
    }
  }
  return Fate::kWrite;
}

}  // namespace fcap::updater
