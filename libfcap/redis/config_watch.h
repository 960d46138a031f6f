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
  /// What was read says nothing any more: the server that has the record is out of reach, and what
  /// happens to records meanwhile is not heard of.
  void forget();

  /// The key to read; empty while nothing is expected.
  [[nodiscard]] const std::string& key() const noexcept { return key_; }

  /// Compares with the reply to GET of key() in that database. Returns whether state() or text()
  /// has changed.
  bool compare_with(const Reply& reply, int database);

  [[nodiscard]] ConfigState state() const noexcept { return state_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// Which events may be missing (ConfigRecord::missing_by_slot()). Any of them unless a record was
  /// read last; none where nothing is expected.
  [[nodiscard]] const std::vector<MissingEvents>& missing() const noexcept { return missing_; }
  /// What may be written, its clock left out. Nothing unless a record was read last.
  [[nodiscard]] const WriteTerms& terms() const noexcept { return terms_; }
  /// Whether a reply has come since expect() and forget().
  [[nodiscard]] bool has_reply() const noexcept { return has_reply_; }

 private:
  void say_nothing();
  void set_state_from(const Reply& reply, int database);

  ExpectedConfig expected_;
  std::string key_;
  ConfigState state_ = ConfigState::kUnknown;
  std::string text_;
  std::string read_;  // the record as it was read last
  bool has_reply_ = false;
  std::vector<MissingEvents> missing_;
  WriteTerms terms_;
};

}  // namespace fcap::redis
