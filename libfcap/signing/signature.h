#pragma once

#include <string_view>

#include <fcap/signed_id.h>

#include "signing/id_form.h"
#include "signing/mac_key.h"

namespace fcap::signing {

/// Whether ids of these sizes can be signed.
[[nodiscard]] bool can_be_signed(const SignedImpression& impression) noexcept;

/// Fills in the origin and the MAC behind the time and the nonce that `form` has. False if OpenSSL
/// fails.
[[nodiscard]] bool seal(const MacKey& key, const SignedImpression& impression,
                        IdForm& form) noexcept;

/// kValid, kForeign or kForged. Says nothing about times.
[[nodiscard]] SignatureVerdict verify_seal(const MacKey& key, const SignedImpression& impression,
                                           const IdForm& form) noexcept;

}  // namespace fcap::signing
