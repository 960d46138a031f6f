#pragma once

#include <map>
#include <string>
#include <string_view>

#include <fcap/status.h>

#include "cli/simulate/csv_fields.h"
#include "events/event.h"

namespace fcap::cli {

/// Rows of a CSV log as events. The first line names the columns: user_id, campaign_id, timestamp
/// (or timestamp_unix_seconds), and, where there are, creative_id (or creative_or_empty), type,
/// imp_id, event_id. Others are ignored.
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
  [[nodiscard]] std::size_t column(std::initializer_list<std::string_view> names) const;
  bool read_time(std::string_view text, Instant& time);
  bool reject(std::string why);

  ColumnNames names_;
  CsvFields fields_;
  std::size_t column_count_ = 0;
  std::size_t user_ = CsvFields::kNone;
  std::size_t campaign_ = CsvFields::kNone;
  std::size_t creative_ = CsvFields::kNone;
  std::size_t time_ = CsvFields::kNone;
  std::size_t type_ = CsvFields::kNone;
  std::size_t imp_id_ = CsvFields::kNone;
  std::size_t event_id_ = CsvFields::kNone;
  std::string why_;
};

}  // namespace fcap::cli
