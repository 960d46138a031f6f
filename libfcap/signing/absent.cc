// In place of mac_key.cc when the CMake option FCAP_TLS is off, and with it OpenSSL: no key can be
// made, and so nothing is signed or verified.
#include "signing/mac_key.h"

namespace fcap::signing {

void FreeMacContext::operator()(evp_mac_ctx_st* /*context*/) const noexcept {}

Result<std::unique_ptr<MacKey>> MacKey::create(std::string_view /*secret*/) {
  return Status::error(StatusCode::kInvalidArgument,
                       "this libfcap was built without OpenSSL and cannot sign or verify "
                       "impression ids (CMake option FCAP_TLS)");
}

MacKey::~MacKey() = default;

bool MacKey::tag(std::span<const std::uint8_t> /*message*/, Tag& /*tag*/) const noexcept {
  return false;
}

bool equal_in_constant_time(std::span<const std::uint8_t> /*a*/,
                            std::span<const std::uint8_t> /*b*/) noexcept {
  return false;
}

bool fill_random(std::span<std::uint8_t> /*room*/) noexcept {
  return false;
}

void wipe(std::string& /*secret*/) noexcept {}

}  // namespace fcap::signing
