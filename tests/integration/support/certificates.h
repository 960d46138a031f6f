#pragma once

#include <filesystem>
#include <string>

#include "support/process.h"

namespace fcap::testing {

/// A certificate and its private key, in PEM.
struct Certificate {
  std::string certificate_file;
  std::string key_file;
};

/// A certificate authority of its own, with the openssl command. Every action throws
/// std::runtime_error with the command's message when it fails.
///
///     Certificates authority("fcap test");
///     const Certificate server = authority.issue("server", "DNS:localhost,IP:127.0.0.1");
class Certificates {
 public:
  static bool available();

  explicit Certificates(const std::string& name);

  /// The authority's own certificate.
  [[nodiscard]] std::string ca_file() const { return file("ca.pem"); }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_.path(); }

  /// `names`: what it is for, such as "DNS:localhost,IP:127.0.0.1".
  [[nodiscard]] Certificate issue(const std::string& name, const std::string& names) const {
    return issue(name, names, "20200101000000Z", "20990101000000Z");
  }
  /// One whose time was over years ago.
  [[nodiscard]] Certificate issue_expired(const std::string& name, const std::string& names) const {
    return issue(name, names, "20200101000000Z", "20210101000000Z");
  }

 private:
  [[nodiscard]] std::string file(const std::string& name) const {
    return (directory_.path() / name).string();
  }
  [[nodiscard]] Certificate issue(const std::string& name, const std::string& names,
                                  const std::string& from, const std::string& to) const;

  TemporaryDirectory directory_;
};

}  // namespace fcap::testing
