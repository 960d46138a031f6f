#pragma once

#include <cstddef>
#include <cstdint>
#include <latch>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fcap/store.h>

#include "support/store_calls.h"

namespace fcap::testing {

/// Users whose records several threads write and read through a Store without pause: appends, alone
/// and in lists, compare-and-sets, and reads that are compared with what was written.
class ClusterLoad {
 public:
  ClusterLoad(Store& store, const std::vector<std::string>& users, std::size_t threads = 4);
  ~ClusterLoad() { stop(); }
  ClusterLoad(const ClusterLoad&) = delete;
  ClusterLoad& operator=(const ClusterLoad&) = delete;

  void stop() { threads_.clear(); }

  /// What has been seen so far.
  struct Seen {
    std::size_t operations = 0;
    std::size_t failures = 0;  ///< operations that did not end as they should
    std::size_t foreign = 0;   ///< reads that held what was never written for this user
    std::size_t lost = 0;      ///< entries that a read lacked although their write had succeeded
    std::string first_failures;
  };
  [[nodiscard]] Seen seen() const;
  /// Waits until so many operations more have succeeded.
  [[nodiscard]] bool wait_for_more(std::size_t count) const;

  /// After stop(): reads all records once more. `lost` counts entries whose write had succeeded and
  /// `foreign` those that nobody wrote or that are there twice.
  [[nodiscard]] Seen verify();

 private:
  // One record at a time: once it is long enough, the user goes on with another in the same slot.
  struct User {
    std::string id;
    int load = 0;  ///< which ClusterLoad's, as they share users, but no records
    int generation = 0;
    std::set<std::uint32_t> written;  ///< fingerprints of entries whose write succeeded
    std::set<std::uint32_t> unsure;   ///< of those whose write failed
    std::uint32_t next = 0;
  };

  static std::string key_of(const User& user);
  static std::uint64_t campaign_of(const User& user);
  void run(std::size_t thread, const std::stop_token& stop);
  void append(User& user);
  void append_all(std::span<User> users);
  void replace(User& user);
  void read(User& user);
  void verify(const User& user, Seen& last);
  static void compare(const User& user, const OwnedOutcome& outcome, Seen& seen);
  static std::string next_entry(User& user);
  static void take(User& user, bool is_written);
  void note(const User& user, const char* what, const OwnedOutcome& outcome, bool is_right);

  Store& store_;
  std::vector<std::vector<User>> users_;     ///< of each thread
  std::vector<std::vector<User>> finished_;  ///< their former records
  mutable std::mutex mutex_;
  Seen seen_;
  std::vector<std::jthread> threads_;
};

}  // namespace fcap::testing
