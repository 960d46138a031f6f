#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/status.h>

#include "events/event.h"

namespace fcap::cli {

/// Rows of a CSV log as events. The first line names the columns: user_id, campaign_id, timestamp
/// (or timestamp_unix_seconds), and, where there are, creative_id (or creative_or_empty), type,
/// imp_id, event_id. Others are ignored. Fields may be in double quotes, and are separated by
/// commas, or by semicolons or tabs where the header line has no comma.
class CsvLog {
 public:
  /// What the log calls a column, by the name above.
  using ColumnNames = std::map<std::string, std::string, std::less<>>;

  explicit CsvLog(ColumnNames names = {}) : names_(std::move(names)) {}

  /// kCorrupt: names the columns that are missing.
  Status read_header(std::string_view line);

  /// The event's views are valid until the next call. On failure gives false and why() says.
  bool read_row(std::string_view line, events::Event& event);
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

  void split(std::string_view line);
  void split_quoted(std::string_view line);
  [[nodiscard]] std::size_t column(std::initializer_list<std::string_view> names) const;
  [[nodiscard]] std::string_view field(std::size_t column) const noexcept {
    return column == kNoColumn ? std::string_view() : fields_[column];
  }
  bool read_time(std::string_view text, Instant& time);
  bool reject(std::string why);

  ColumnNames names_;
  char separator_ = ',';
  std::vector<std::string_view> fields_;
  std::string unquoted_;
  std::size_t column_count_ = 0;
  std::size_t user_ = kNoColumn;
  std::size_t campaign_ = kNoColumn;
  std::size_t creative_ = kNoColumn;
  std::size_t time_ = kNoColumn;
  std::size_t type_ = kNoColumn;
  std::size_t imp_id_ = kNoColumn;
  std::size_t event_id_ = kNoColumn;
  std::string why_;
};

}  // namespace fcap::cli
