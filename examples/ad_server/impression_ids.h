#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <fcap/signed_id.h>

namespace ad_server {

/// Makes the ids of impressions: signed ones where there is a file of keys, else plain ones.
class ImpressionIds {
 public:
  /// `key_file` may be empty. Throws std::runtime_error if it cannot be used.
  explicit ImpressionIds(const std::string& key_file) {
    if (key_file.empty()) return;
    auto opened = fcap::SigningKeyFile::open(key_file);
    if (!opened.ok()) throw std::runtime_error("--signing-keys: " + opened.status().text());
    keys_ = std::move(opened).value();
  }

  /// `plain` is the id where nothing is signed. None: no key is in force at this time. Thread-safe.
  [[nodiscard]] std::optional<std::string> make(const fcap::SignedImpression& impression,
                                                fcap::Instant served,
                                                const std::string& plain) const {
    if (!keys_) return plain;
    auto id = keys_->keys()->sign(impression, served);
    if (!id.ok()) return std::nullopt;
    return std::move(id).value();
  }

 private:
  std::unique_ptr<fcap::SigningKeyFile> keys_;
};

}  // namespace ad_server
