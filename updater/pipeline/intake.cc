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

bool Intake::decode(const events::Message& message) {
  events_.clear();
  refused_ = message.value.size() > options_.message_bytes_max;
  if (refused_) {
    rejected_ = {events::Rejection::kTooLarge, {}};
    return true;
  }
  const events::Decoded decoded = decoder_->decode(message, events_, rejected_);
  refused_ = decoded == events::Decoded::kRejected;
  return decoded != events::Decoded::kNotYet;
}

Intake::Fate Intake::fate_of(const events::Event& event, const IntakeClocks& clocks) {
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
