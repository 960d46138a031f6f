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

Intake::Fate Intake::judge(std::string_view message, const IntakeClocks& clocks) {
  if (message.size() > options_.message_bytes_max) {
    rejected_ = {events::Rejection::kTooLarge, {}};
    return Fate::kReject;
  }
  if (const auto rejected = decoder_->decode(message, event_)) {
    rejected_ = *rejected;
    return Fate::kReject;
  }
  // Before the clocks: nobody's events need no dead letter, whatever their time.
  if (is_null_user(event_.user_id)) return Fate::kNullUser;
  if (event_.time > clocks.local_now + options_.future_allowed) {
    rejected_ = {events::Rejection::kInFuture, "timestamp"};
    return Fate::kReject;
  }
  if (event_.time <= clocks.trim_now - options_.retention) return Fate::kTooOld;
  return Fate::kWrite;
}

}  // namespace fcap::updater
