#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "base/table_version.h"
#include "rules/shared_spec.h"
#include "sources/pg_load.h"

namespace fcap::sources {

/// A rule set as a source offers it: read, not judged. What is equal in the rule set that was named
/// to look() is shared with it.
struct OfferedRules {
  rules::SharedSpec spec;
  base::TableVersion version;
  /// Rows that were left out, and why.
  std::vector<std::string> quarantined = {};
  /// The last moment at which it is known to have been the current one.
  std::chrono::steady_clock::time_point current_at;
};

/// The tables. Remembers which state of them was taken last.
class PostgresSource {
 public:
  explicit PostgresSource(std::string conninfo) : conninfo_(std::move(conninfo)) {}

  /// None: unchanged since taken().
  Result<std::optional<OfferedRules>> look(const postgres::PgWait& wait, const RuleSet* last);
  /// The offer of the last look() is now in use.
  void taken() { taken_ = offered_; }
  /// This process has the rules of this state of the tables already, from a snapshot: look() need
  /// not read them.
  void assume_taken(base::TableVersion version) { taken_ = std::move(version); }

 private:
  std::string conninfo_;
  std::optional<base::TableVersion> offered_;
  std::optional<base::TableVersion> taken_;
};

/// A snapshot file that somebody else publishes.
class FileSource {
 public:
  explicit FileSource(std::string path) : path_(std::move(path)) {}

  /// None: unchanged since taken(). Reads no more than the file's times as long as those are the
  /// same.
  Result<std::optional<OfferedRules>> look(const RuleSet* last);
  void taken();
  /// When the file's publisher last said that it is current: its time of modification.
  [[nodiscard]] std::chrono::steady_clock::time_point current_at() const { return current_at_; }

 private:
  /// Changes whenever the file is replaced, rewritten or touched.
  struct Identity {
    unsigned long long device = 0;
    unsigned long long inode = 0;
    long long bytes = -1;
    long long modified_s = 0;
    long long modified_ns = 0;
    bool operator==(const Identity&) const = default;
  };

  Status stat_file(Identity& identity);

  std::string path_;
  std::string offered_header_;
  Identity offered_;
  std::string taken_header_;
  Identity taken_;
  std::chrono::steady_clock::time_point current_at_;
};

}  // namespace fcap::sources
