#include "events/signature_check.h"

#include <utility>

namespace fcap::events {

SignatureCheck::SignatureCheck(Keys keys, const SignatureCheckOptions& options)
    : keys_(std::move(keys)), options_(options) {}

bool SignatureCheck::required_of(const Event& event) const noexcept {
  switch (options_.required) {
    case SignatureRequired::kNothing:
      return false;
    case SignatureRequired::kImpressions:
      return event.type == EventType::kImpression;
    case SignatureRequired::kAll:
      return true;
  }
  return true;
}

std::optional<Rejected> SignatureCheck::refusal_of(const Event& event) const {
  if (event.kind == Event::Kind::kErasure) return std::nullopt;
  const SignedImpression impression{
      .user_id = event.user_id, .campaign_id = event.campaign_id, .creative_id = event.creative_id};
  switch (keys_()->verify(event.event_id, impression, event.time, options_.limits)) {
    case SignatureVerdict::kValid:
      return std::nullopt;
    case SignatureVerdict::kNotSigned:
      if (!required_of(event)) return std::nullopt;
      return Rejected{Rejection::kSignatureMissing};
    case SignatureVerdict::kMalformed:
      return Rejected{Rejection::kSignatureMalformed};
    case SignatureVerdict::kUnknownKey:
      return Rejected{Rejection::kSignatureUnknownKey};
    case SignatureVerdict::kForeign:
      return Rejected{Rejection::kSignatureForeign};
    case SignatureVerdict::kKeyNotInForce:
      return Rejected{Rejection::kSignatureKeyNotInForce};
    case SignatureVerdict::kExpired:
      return Rejected{Rejection::kSignatureExpired, "timestamp"};
    case SignatureVerdict::kForged:
      break;
  }
  return Rejected{Rejection::kSignatureForged};
}

}  // namespace fcap::events
