#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <fcap/signed_id.h>

#include "events/event.h"
#include "events/event_decoder.h"

namespace fcap::events {

/// Which events are refused if their ids have no signature.
enum class SignatureRequired : std::uint8_t { kNothing, kImpressions, kAll };

struct SignatureCheckOptions {
  SignatureRequired required = SignatureRequired::kImpressions;
  SignatureLimits limits;
};

/// Judges the signatures of events' ids. Erasures have none.
///
/// Thread safety: refusal_of() from any thread, if `keys` may be called from any. Pure but for
/// `keys`.
class SignatureCheck {
 public:
  /// The keys in use at the moment; never null.
  using Keys = std::function<std::shared_ptr<const SigningKeys>()>;

  SignatureCheck(Keys keys, const SignatureCheckOptions& options);

  /// Why the event is refused; nullopt: it is not.
  [[nodiscard]] std::optional<Rejected> refusal_of(const Event& event) const;

 private:
  [[nodiscard]] bool required_of(const Event& event) const noexcept;

  Keys keys_;
  SignatureCheckOptions options_;
};

}  // namespace fcap::events
