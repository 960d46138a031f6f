#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include <fcap/rule_set.h>

namespace fcap::cli {

/// Ids for the hashes that a record holds, as far as a rule set names them.
class Names {
 public:
  /// Knows no name.
  Names() = default;
  explicit Names(const RuleSet& rules);

  /// The campaign's or creative's id, or "#" and twelve hexadecimal digits.
  [[nodiscard]] std::string campaign(std::uint64_t hash) const;
  [[nodiscard]] std::string creative(std::uint64_t hash) const;

  /// Also knows this campaign and creative (which may be empty).
  void learn(const std::string& campaign, const std::string& creative);

 private:
  using Ids = std::unordered_map<std::uint64_t, std::string>;
  [[nodiscard]] static std::string find(const Ids& ids, std::uint64_t hash);

  Ids campaigns_;
  Ids creatives_;
};

}  // namespace fcap::cli
