#include "signing/mac_key.h"

#include <utility>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

namespace fcap::signing {
namespace {

constexpr std::size_t kIdleMax = 64;

struct FreeMac {
  void operator()(EVP_MAC* mac) const noexcept { EVP_MAC_free(mac); }
};

// Keeps what OpenSSL reports about our calls out of the host's error queue.
class OwnErrors {
 public:
  OwnErrors() noexcept { ERR_set_mark(); }
  ~OwnErrors() { ERR_pop_to_mark(); }
  OwnErrors(const OwnErrors&) = delete;
  OwnErrors& operator=(const OwnErrors&) = delete;
};

std::span<const std::uint8_t> bytes_of(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

void FreeMacContext::operator()(evp_mac_ctx_st* context) const noexcept {
  EVP_MAC_CTX_free(context);
}

Result<std::unique_ptr<MacKey>> MacKey::create(std::string_view secret) {
  const OwnErrors own;
  const auto failed = [] {
    return Status::error(StatusCode::kInternal, "OpenSSL provides no HMAC with SHA-256");
  };
  const std::unique_ptr<EVP_MAC, FreeMac> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  if (!mac) return failed();
  std::unique_ptr<MacKey> key(new MacKey);
  key->secret_ = secret;
  key->idle_.reserve(kIdleMax);
  key->original_.reset(EVP_MAC_CTX_new(mac.get()));
  std::string digest = "SHA256";
  const std::array<OSSL_PARAM, 2> parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), digest.size()),
      OSSL_PARAM_construct_end()};
  if (!key->original_ || EVP_MAC_init(key->original_.get(), bytes_of(secret).data(), secret.size(),
                                      parameters.data()) != 1) {
    return failed();
  }
  // The first versions of OpenSSL 3 went on where the last message had ended.
  const auto probe = bytes_of("probe");
  Tag with_secret{};
  Tag without{};
  const MacContext context = key->take();
  if (!context || !key->compute(context.get(), probe, with_secret)) return failed();
  key->restarts_ = true;
  key->restarts_ = key->compute(context.get(), probe, without) && with_secret == without;
  return key;
}

MacKey::~MacKey() {
  wipe(secret_);
}

MacContext MacKey::take() const noexcept {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return MacContext(EVP_MAC_CTX_dup(original_.get()));
  MacContext context = std::move(idle_.back());
  idle_.pop_back();
  return context;
}

void MacKey::give_back(MacContext context) const noexcept {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(context));
}

bool MacKey::compute(evp_mac_ctx_st* context, std::span<const std::uint8_t> message,
                     Tag& tag) const noexcept {
  const auto secret = restarts_ ? std::span<const std::uint8_t>{} : bytes_of(secret_);
  std::size_t written = 0;
  return EVP_MAC_init(context, secret.data(), secret.size(), nullptr) == 1 &&
         EVP_MAC_update(context, message.data(), message.size()) == 1 &&
         EVP_MAC_final(context, tag.data(), &written, tag.size()) == 1 && written == tag.size();
}

bool MacKey::tag(std::span<const std::uint8_t> message, Tag& tag) const noexcept {
  const OwnErrors own;
  MacContext context = take();
  if (!context || !compute(context.get(), message, tag)) return false;
  give_back(std::move(context));
  return true;
}

bool equal_in_constant_time(std::span<const std::uint8_t> a,
                            std::span<const std::uint8_t> b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool fill_random(std::span<std::uint8_t> room) noexcept {
  const OwnErrors own;
  return RAND_bytes(room.data(), static_cast<int>(room.size())) == 1;
}

void wipe(std::string& secret) noexcept {
  OPENSSL_cleanse(secret.data(), secret.size());
}

}  // namespace fcap::signing
