#include <algorithm>
#include <span>
#include <utility>

#include <fcap/signed_id.h>

#include "base/mistakes.h"
#include "signing/id_form.h"
#include "signing/mac_key.h"
#include "signing/signature.h"

namespace fcap {
namespace {

constexpr std::size_t kSecretBytesMin = 32;
constexpr std::size_t kSecretBytesMax = 256;
constexpr Instant kTimeEnd = instant_from_ms(std::int64_t{1} << 48U);

void check_key(const SigningKey& key, base::Mistakes& mistakes) {
  const auto wrong = [&](const std::string& what) {
    mistakes.add("signing key \"" + key.id + "\": " + what);
  };
  if (!signing::is_key_id(key.id)) {
    wrong("the id must be 1 to 16 of A-Z, a-z, 0-9, \"_\" and \"-\"");
  }
  if (key.secret.size() < kSecretBytesMin || key.secret.size() > kSecretBytesMax) {
    wrong("the secret must have 32 to 256 bytes");
  }
  if (key.until && *key.until <= key.from) wrong("\"until\" must be after \"from\"");
}

void check_keys(const std::vector<SigningKey>& keys, base::Mistakes& mistakes) {
  if (keys.empty()) mistakes.add("signing keys: there must be at least one");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    check_key(keys[i], mistakes);
    const auto before = std::span(keys).first(i);
    if (std::ranges::find(before, keys[i].id, &SigningKey::id) != before.end()) {
      mistakes.add("signing key \"" + keys[i].id + "\": the id occurs more than once");
    }
  }
}

}  // namespace

std::string_view to_string(SignatureVerdict verdict) noexcept {
  switch (verdict) {
    case SignatureVerdict::kValid:
      return "valid";
    case SignatureVerdict::kNotSigned:
      return "not_signed";
    case SignatureVerdict::kMalformed:
      return "malformed";
    case SignatureVerdict::kUnknownKey:
      return "unknown_key";
    case SignatureVerdict::kForged:
      return "forged";
    case SignatureVerdict::kForeign:
      return "foreign";
    case SignatureVerdict::kKeyNotInForce:
      return "key_not_in_force";
    case SignatureVerdict::kExpired:
      return "expired";
  }
  return "unknown";
}

struct SigningKeys::Parts {
  struct DatedKey {
    Instant from;
    std::optional<Instant> until;
    std::unique_ptr<signing::MacKey> mac;

    [[nodiscard]] bool in_force(Instant at) const noexcept {
      return at >= from && (!until || at < *until);
    }
  };

  // The few that there are; an index, or none.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view id) const noexcept {
    const auto found = std::ranges::find(ids, id);
    if (found == ids.end()) return std::nullopt;
    return static_cast<std::size_t>(found - ids.begin());
  }
  [[nodiscard]] std::optional<std::size_t> newest(Instant at) const noexcept {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].in_force(at) && (!best || keys[i].from >= keys[*best].from)) best = i;
    }
    return best;
  }

  std::vector<std::string> ids;
  std::vector<DatedKey> keys;  // of the same indices
};

SigningKeys::SigningKeys(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SigningKeys::~SigningKeys() = default;

Result<std::shared_ptr<const SigningKeys>> SigningKeys::create(std::vector<SigningKey> keys) {
  base::Mistakes mistakes;
  check_keys(keys, mistakes);
  auto parts = std::make_unique<Parts>();
  Status failure;
  for (SigningKey& key : keys) {
    if (mistakes.empty() && failure.ok()) {
      auto mac = signing::MacKey::create(key.secret);
      if (mac.ok()) {
        parts->ids.push_back(key.id);
        parts->keys.push_back({key.from, key.until, std::move(mac).value()});
      } else {
        failure = mac.status();
      }
    }
    signing::wipe(key.secret);
  }
  if (!mistakes.empty()) {
    return Status::error(StatusCode::kInvalidArgument, mistakes.one_line());
  }
  if (!failure.ok()) return failure;
  return std::shared_ptr<const SigningKeys>(new SigningKeys(std::move(parts)));
}

Result<std::string> SigningKeys::sign(const SignedImpression& impression,
                                      Instant serve_time) const {
  if (!signing::can_be_signed(impression)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "sign: user and campaign must be ids of 1 to 256 bytes, and the creative "
                         "of at most 256");
  }
  if (serve_time < Instant{} || serve_time >= kTimeEnd) {
    return Status::error(StatusCode::kInvalidArgument,
                         "sign: the serve time must lie between the years 1970 and 10889");
  }
  const auto index = parts_->newest(serve_time);
  if (!index) {
    return Status::error(StatusCode::kNotFound,
                         "sign: no key is in force at the serve time; add one to the keys");
  }
  signing::IdForm form;
  form.key_id = parts_->ids[*index];
  signing::write_time(serve_time, form.body);
  if (!signing::fill_random(
          std::span(form.body).subspan(signing::kTimeBytes, signing::kNonceBytes)) ||
      !signing::seal(*parts_->keys[*index].mac, impression, form)) {
    return Status::error(StatusCode::kInternal, "sign: OpenSSL failed", true);
  }
  return signing::write_id(form);
}

SignatureVerdict SigningKeys::verify(std::string_view id, const SignedImpression& impression,
                                     Instant event_time,
                                     const SignatureLimits& limits) const noexcept {
  if (!signing::claims_signature(id)) return SignatureVerdict::kNotSigned;
  const auto form = signing::parse_id(id);
  if (!form) return SignatureVerdict::kMalformed;
  const auto index = parts_->find(form->key_id);
  if (!index) return SignatureVerdict::kUnknownKey;
  const Parts::DatedKey& key = parts_->keys[*index];
  const SignatureVerdict seal = signing::verify_seal(*key.mac, impression, *form);
  if (seal != SignatureVerdict::kValid) return seal;
  const Instant served = form->serve_time();
  if (!key.in_force(served)) return SignatureVerdict::kKeyNotInForce;
  const bool in_time =
      event_time >= served - limits.early_allowed && event_time <= served + limits.lifetime;
  return in_time ? SignatureVerdict::kValid : SignatureVerdict::kExpired;
}

const std::vector<std::string>& SigningKeys::ids() const noexcept {
  return parts_->ids;
}

}  // namespace fcap
