#pragma once

#include <string>
#include <vector>

#include <fcap/health.h>
#include <fcap/store.h>

#include "redis/config_record.h"
#include "redis/reply.h"

namespace fcap::redis {

/// Compares a reader's configuration with the one that the writer has recorded, each time the
/// record was read. Free of I/O. Thread safety: none.
class ConfigWatch {
 public:
  void expect(const ExpectedConfig& expected);

  /// The key to read; empty while nothing is expected.
  [[nodiscard]] const std::string& key() const noexcept { return key_; }

  /// Compares with the reply to GET of key() in that database. Returns whether state() or text()
  /// has changed.
  bool compare_with(const Reply& reply, int database);

  [[nodiscard]] ConfigState state() const noexcept { return state_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// Which events may be missing, by the last record that could be read
  /// (ConfigRecord::missing_by_slot()). Any of them where there is no record.
  [[nodiscard]] const std::vector<MissingEvents>& missing() const noexcept { return missing_; }
  /// What may be written, by the last record that could be read; its clock is left out. Nothing
  /// while there is no record.
  [[nodiscard]] const WriteTerms& terms() const noexcept { return terms_; }

 private:
  void set_state_from(const Reply& reply, int database);

  ExpectedConfig expected_;
  std::string key_;
  ConfigState state_ = ConfigState::kUnknown;
  std::string text_;
  std::string read_;  // the record as it was read last
  std::vector<MissingEvents> missing_;
  WriteTerms terms_;
};

}  // namespace fcap::redis
