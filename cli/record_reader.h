#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcap/status.h>
#include <fcap/store.h>
#include <fcap/time.h>

#include "cli/blocking_get.h"
#include "cli/cli_settings.h"
#include "redis/client.h"
#include "redis/config_record.h"

namespace fcap::cli {

/// Reads users' records from Redis.
class RecordReader {
 public:
  /// Fails on a setting that is wrong, and when Redis does not take a connection in time: of a
  /// cluster, any shard. Whether a user's own shard does is found out when the user is read.
  static Result<std::unique_ptr<RecordReader>> open(const AccessSettings& access);

  /// What these settings say otherwise than the updater that writes the records, as lines that end
  /// with a newline. Empty: nothing differs, or what the updater has recorded cannot be read.
  std::string config_warning(const AccessSettings& access);

  /// Events before it may be missing from the user's record, because the updater is reading them
  /// again after a loss; Instant::max() where it has recorded nothing. None: none is, or what it
  /// has recorded cannot be read.
  std::optional<Instant> missing_before(const std::string& user);

  /// nullopt: there is no record.
  Result<std::optional<std::string>> read(const std::string& user);

  /// Does the same for a check, which a replica may answer.
  Result<CheckedRecord> read_for_check(const std::string& user);

  /// Until the record expires; nullopt: it never expires, or there is no record.
  Result<std::optional<std::chrono::milliseconds>> time_to_live(const std::string& user);

  [[nodiscard]] std::string key_of(const std::string& user) const;

 private:
  RecordReader() = default;

  /// In a cluster, waits for a connection to the shard of a key.
  [[nodiscard]] Status reach(const std::string& key) const;

  /// Says which server and setting an outcome is about.
  [[nodiscard]] Status explain(const Status& status) const;

  std::string address_;
  std::string key_prefix_;
  std::chrono::milliseconds timeout_{0};
  std::shared_ptr<redis::Client> client_;
  std::unique_ptr<Store> store_;
  /// Reads what the updater has recorded, if it was not read just now.
  void refresh_missing();

  std::vector<redis::MissingEvents> missing_;  // ConfigRecord::missing_by_slot()
  std::chrono::steady_clock::time_point missing_known_until_{};
};

}  // namespace fcap::cli
