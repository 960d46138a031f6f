// A signed id as anybody may have sent it, and a file of keys: the first byte says which.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <fcap/signed_id.h>

#include "signing/id_form.h"

namespace {

std::shared_ptr<const fcap::SigningKeys> make_keys() {
  auto keys = fcap::SigningKeys::create({{.id = "k1", .secret = std::string(32, 's'), .from = {}}});
  if (!keys.ok()) std::abort();
  return std::move(keys).value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fcap;
  static const auto keys = make_keys();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    (void)SigningKeys::parse(text).ok();
    return 0;
  }
  const auto verdict = keys->verify(text, {.user_id = "u", .campaign_id = "c"}, Instant{});
  // Nobody guesses a MAC.
  if (verdict == SignatureVerdict::kValid) std::abort();
  const auto form = signing::parse_id(text);
  if (!form) {
    if (verdict != SignatureVerdict::kNotSigned && verdict != SignatureVerdict::kMalformed) {
      std::abort();
    }
    return 0;
  }
  // One id has one form.
  if (signing::write_id(*form) != text) std::abort();
  if (form->key_id != "k1" && verdict != SignatureVerdict::kUnknownKey) std::abort();
  return 0;
}
