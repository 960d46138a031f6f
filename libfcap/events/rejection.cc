#include "events/event_decoder.h"

namespace fcap::events {

std::string_view to_string(Rejection reason) noexcept {
  switch (reason) {
    case Rejection::kNotJson:
      return "not_json";
    case Rejection::kNotAnObject:
      return "not_an_object";
    case Rejection::kMissingMember:
      return "missing_member";
    case Rejection::kWrongType:
      return "wrong_type";
    case Rejection::kIdTooLong:
      return "id_too_long";
    case Rejection::kBadTimestamp:
      return "bad_timestamp";
    case Rejection::kUnknownType:
      return "unknown_type";
    case Rejection::kTooLarge:
      return "too_large";
    case Rejection::kInFuture:
      return "in_future";
    case Rejection::kSignatureMissing:
      return "signature_missing";
    case Rejection::kSignatureMalformed:
      return "signature_malformed";
    case Rejection::kSignatureUnknownKey:
      return "signature_unknown_key";
    case Rejection::kSignatureForged:
      return "signature_forged";
    case Rejection::kSignatureForeign:
      return "signature_foreign";
    case Rejection::kSignatureKeyNotInForce:
      return "signature_key_not_in_force";
    case Rejection::kSignatureExpired:
      return "signature_expired";
    case Rejection::kRefused:
      return "refused";
  }
  return "unknown";
}

std::optional<Rejected> EventDecoder::decode_one(std::string_view value, Event& event) {
  Rejected rejected{Rejection::kMissingMember, {}};
  if (decode(value, decoded_, rejected) != Decoded::kEvents || decoded_.empty()) return rejected;
  event = decoded_.front();
  return std::nullopt;
}

}  // namespace fcap::events
