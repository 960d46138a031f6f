#pragma once

#include <map>
#include <string>
#include <string_view>

#include <fcap/status.h>

namespace fcap::cli {

/// What people call campaigns and advertisers, whose ids mean nothing to them.
class ItemNames {
 public:
  /// Reads a JSON object, {"c1": "Summer sale"}, or CSV with the columns id (or campaign_id) and
  /// name. The status names --names, the file and the line.
  static Result<ItemNames> read(const std::string& path);

  /// Empty: it has none.
  [[nodiscard]] std::string name(std::string_view id) const;
  /// "Summer sale (c1)", or the id alone.
  [[nodiscard]] std::string label(std::string_view id) const;

 private:
  std::map<std::string, std::string, std::less<>> names_;
};

}  // namespace fcap::cli
