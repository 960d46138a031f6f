#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/export.h>
#include <fcap/log.h>
#include <fcap/status.h>
#include <fcap/time.h>

namespace fcap {

/// A key that signs impression ids.
struct SigningKey {
  std::string id;      ///< 1 to 16 of A-Z, a-z, 0-9, "_" and "-"; stands in every id that it signs
  std::string secret;  ///< 32 to 256 random bytes
  Instant from;        ///< signs from then on
  std::optional<Instant> until = {};  ///< and before then; none: without end
};

/// What a signed id is about. Ids of 1 to 256 bytes; the creative's may be empty.
struct SignedImpression {
  std::string_view user_id;
  std::string_view campaign_id;
  std::string_view creative_id = {};
};

/// When an event with a signed id may have happened: not before the serve time less
/// `early_allowed`, and at most `lifetime` after the serve time.
struct SignatureLimits {
  std::chrono::milliseconds lifetime = std::chrono::hours{24};
  std::chrono::milliseconds early_allowed{0};
};

/// What verification says of an id.
enum class SignatureVerdict : std::uint8_t {
  kValid,
  kNotSigned,      ///< an id of another form, which claims nothing
  kMalformed,      ///< begins like a signed id but is not one; perhaps it was cut off
  kUnknownKey,     ///< signed with a key that is not among these
  kForged,         ///< the key did not make it
  kForeign,        ///< the key made it, but for another user, campaign or creative
  kKeyNotInForce,  ///< the serve time is not one at which the key signs
  kExpired,        ///< the event is not within the limits after the serve time
};
[[nodiscard]] FCAP_EXPORT std::string_view to_string(SignatureVerdict verdict) noexcept;

/// Keys that sign and verify impression ids, so that nobody without a key can make up impressions.
/// docs/signed-ids.md defines the bytes.
///
///     auto keys = fcap::SigningKeys::read("/etc/fcap/signing-keys.json");
///     if (!keys.ok()) return keys.status();
///     auto id = keys.value()->sign({.user_id = "u1", .campaign_id = "c1"}, now);
///
/// Thread safety: immutable; share it freely. Signing and verifying call no server and read no
/// file; verifying does not allocate, but for a context per thread that is in it at the same time.
class FCAP_EXPORT SigningKeys {
 public:
  /// kInvalidArgument: no key, two keys of one id, or a key that is not as SigningKey says; the
  /// text never repeats a secret. Also where this libfcap was built without OpenSSL.
  static Result<std::shared_ptr<const SigningKeys>> create(std::vector<SigningKey> keys);
  /// From JSON: {"keys": [{"id": "2026a", "secret": "<64 to 512 hex digits>",
  /// "from": "2026-01-01T00:00:00Z", "until": "2026-07-01T00:00:00Z"}]}; "until" may be left out.
  static Result<std::shared_ptr<const SigningKeys>> parse(std::string_view json);
  /// From a file with this JSON. kNotFound: it cannot be opened.
  static Result<std::shared_ptr<const SigningKeys>> read(const std::string& path);
  ~SigningKeys();
  SigningKeys(const SigningKeys&) = delete;
  SigningKeys& operator=(const SigningKeys&) = delete;

  /// A new id for one impression, of at most 67 bytes from A-Z, a-z, 0-9, ".", "_" and "-". No two
  /// are equal. It is signed by the key in force at `serve_time` that came into force last.
  /// kInvalidArgument: an id of `impression` is too long or missing, or the time lies before 1970;
  /// kNotFound: no key is in force.
  [[nodiscard]] Result<std::string> sign(const SignedImpression& impression,
                                         Instant serve_time) const;
  /// Whether one of the keys signed `id` for this impression, and whether its event may have
  /// happened at `event_time`. Any bytes are safe; comparisons of secrets take constant time.
  [[nodiscard]] SignatureVerdict verify(std::string_view id, const SignedImpression& impression,
                                        Instant event_time,
                                        const SignatureLimits& limits = {}) const noexcept;

  /// The keys' ids, in the order of the file.
  [[nodiscard]] const std::vector<std::string>& ids() const noexcept;

 private:
  struct Parts;
  explicit SigningKeys(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// A file of keys that is read again within five seconds of a change, on a thread of its own. If
/// the new content cannot be used, the former keys stay and the log says why.
///
/// Thread safety: all functions from any thread; `log` is called on the file's thread or on the one
/// that calls reload().
class FCAP_EXPORT SigningKeyFile {
 public:
  /// Fails as SigningKeys::read() does.
  static Result<std::unique_ptr<SigningKeyFile>> open(std::string path, LogCallback log = {});
  ~SigningKeyFile();
  SigningKeyFile(const SigningKeyFile&) = delete;
  SigningKeyFile& operator=(const SigningKeyFile&) = delete;

  /// The keys as last read; never null.
  [[nodiscard]] std::shared_ptr<const SigningKeys> keys() const;
  /// Reads the file at once. On failure the former keys stay.
  Status reload();

 private:
  struct KeyFileParts;
  explicit SigningKeyFile(std::unique_ptr<KeyFileParts> parts);
  std::unique_ptr<KeyFileParts> parts_;
};

}  // namespace fcap
