#include "signing/signature.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace fcap::signing {
namespace {

constexpr std::size_t kSubjectBytesMax = 256;  // of each id, as in events
constexpr std::size_t kNonceAt = kTimeBytes;
constexpr std::size_t kOriginAt = kNonceAt + kNonceBytes;
constexpr std::size_t kMacAt = kOriginAt + kOriginBytes;

// What goes before the bytes that are authenticated, so that no origin is ever a MAC.
enum class Purpose : std::uint8_t { kOrigin = 0, kMac = 1 };

// The bytes that an HMAC is computed over.
class Authenticated {
 public:
  // Everything of the body in front of the field itself, and the key's id.
  Authenticated(Purpose purpose, const IdForm& form, std::size_t body_bytes) noexcept {
    add_byte(static_cast<std::uint8_t>(purpose));
    add(std::span(form.body).first(body_bytes));
    add_byte(static_cast<std::uint8_t>(form.key_id.size()));
    add(form.key_id);
  }

  void add_subject(std::string_view id) noexcept {
    add_byte(static_cast<std::uint8_t>(id.size() >> 8U));
    add_byte(static_cast<std::uint8_t>(id.size()));
    add(id);
  }

  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept {
    return std::span(bytes_).first(size_);
  }

 private:
  void add_byte(std::uint8_t byte) noexcept { bytes_[size_++] = byte; }
  template <typename Bytes>
  void add(const Bytes& bytes) noexcept {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += bytes.size();
  }

  static constexpr std::size_t kBytesMax =
      1 + kMacAt + 1 + kKeyIdBytesMax + 3 * (2 + kSubjectBytesMax);
  std::array<std::uint8_t, kBytesMax> bytes_;  // NOLINT: filled as far as size_ says
  std::size_t size_ = 0;
};

bool origin_tag(const MacKey& key, const IdForm& form, MacKey::Tag& tag) noexcept {
  return key.tag(Authenticated(Purpose::kOrigin, form, kOriginAt).bytes(), tag);
}

bool mac_tag(const MacKey& key, const SignedImpression& impression, const IdForm& form,
             MacKey::Tag& tag) noexcept {
  Authenticated authenticated(Purpose::kMac, form, kMacAt);
  authenticated.add_subject(impression.user_id);
  authenticated.add_subject(impression.campaign_id);
  authenticated.add_subject(impression.creative_id);
  return key.tag(authenticated.bytes(), tag);
}

}  // namespace

bool can_be_signed(const SignedImpression& impression) noexcept {
  return !impression.user_id.empty() && impression.user_id.size() <= kSubjectBytesMax &&
         !impression.campaign_id.empty() && impression.campaign_id.size() <= kSubjectBytesMax &&
         impression.creative_id.size() <= kSubjectBytesMax;
}

bool seal(const MacKey& key, const SignedImpression& impression, IdForm& form) noexcept {
  MacKey::Tag tag;
  if (!origin_tag(key, form, tag)) return false;
  std::copy_n(tag.begin(), kOriginBytes, form.body.begin() + kOriginAt);
  if (!mac_tag(key, impression, form, tag)) return false;
  std::copy_n(tag.begin(), kMacBytes, form.body.begin() + kMacAt);
  return true;
}

SignatureVerdict verify_seal(const MacKey& key, const SignedImpression& impression,
                             const IdForm& form) noexcept {
  MacKey::Tag tag{};
  const std::span body(form.body);
  if (can_be_signed(impression) && mac_tag(key, impression, form, tag) &&
      equal_in_constant_time(std::span(tag).first(kMacBytes), body.subspan(kMacAt))) {
    return SignatureVerdict::kValid;
  }
  // The origin tells people why an id was refused; nothing is accepted for it.
  const bool ours =
      origin_tag(key, form, tag) && equal_in_constant_time(std::span(tag).first(kOriginBytes),
                                                           body.subspan(kOriginAt, kOriginBytes));
  return ours ? SignatureVerdict::kForeign : SignatureVerdict::kForged;
}

}  // namespace fcap::signing
