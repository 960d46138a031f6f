#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/status.h>

struct evp_mac_ctx_st;

namespace fcap::signing {

struct FreeMacContext {
  void operator()(evp_mac_ctx_st* context) const noexcept;
};
using MacContext = std::unique_ptr<evp_mac_ctx_st, FreeMacContext>;

/// A secret that HMAC-SHA-256 is computed with.
///
/// Thread safety: all functions from any thread. Contexts of OpenSSL are kept for the next call, so
/// that only the first calls, or more calls at the same time than ever before, allocate.
class MacKey {
 public:
  static constexpr std::size_t kTagBytes = 32;
  using Tag = std::array<std::uint8_t, kTagBytes>;

  /// Fails where this build has no OpenSSL, or OpenSSL has no HMAC-SHA-256.
  static Result<std::unique_ptr<MacKey>> create(std::string_view secret);
  ~MacKey();
  MacKey(const MacKey&) = delete;
  MacKey& operator=(const MacKey&) = delete;

  /// False only if OpenSSL fails, as when there is no memory.
  [[nodiscard]] bool tag(std::span<const std::uint8_t> message, Tag& tag) const noexcept;

 private:
  MacKey() = default;
  [[nodiscard]] MacContext take() const noexcept;
  void give_back(MacContext context) const noexcept;
  [[nodiscard]] bool compute(evp_mac_ctx_st* context, std::span<const std::uint8_t> message,
                             Tag& tag) const noexcept;

  std::string secret_;
  bool restarts_ = false;  // a context can be used again without the secret
  MacContext original_;
  mutable std::mutex mutex_;
  mutable std::vector<MacContext> idle_;  // guarded by mutex_
};

/// Takes a time that does not depend on where they differ. Both must have one size.
[[nodiscard]] bool equal_in_constant_time(std::span<const std::uint8_t> a,
                                          std::span<const std::uint8_t> b) noexcept;
/// Random bytes that nobody can predict; false if there are none.
[[nodiscard]] bool fill_random(std::span<std::uint8_t> room) noexcept;
/// Overwrites a secret that is no longer needed.
void wipe(std::string& secret) noexcept;

}  // namespace fcap::signing
