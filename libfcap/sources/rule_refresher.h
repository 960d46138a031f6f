#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fcap/checker_options.h>
#include <fcap/rule_set.h>
#include <fcap/status.h>

namespace fcap::sources {

/// What a refresher knows about itself.
struct RefreshState {
  std::uint64_t version = 0;  ///< of the rule set handed out last
  std::uint64_t rule_count = 0;
  std::uint64_t reloads = 0;          ///< rule sets handed out
  std::uint64_t refused = 0;          ///< reloads refused: invalid, empty, sharply shrunken
  std::uint64_t failed = 0;           ///< attempts that got no answer
  std::chrono::milliseconds age{-1};  ///< since the set was last known to be current; -1: none yet
  std::string source;                 ///< "postgres", "snapshot" or "none"
  std::string last_error;             ///< empty after a success
  /// Rules of the set that were left out, and why (RuleSet::quarantined(), and rows that cannot be
  /// rules): how many, and the first kQuarantinedNamedMax.
  std::uint64_t quarantined_count = 0;
  std::vector<std::string> quarantined = {};
};

inline constexpr std::size_t kQuarantinedNamedMax = 20;

/// Keeps a process's rule set current, on a thread of its own: polls the version with jitter, loads
/// on change, refuses bad reloads, keeps the last good one and writes it to the snapshot file. Used
/// by the Checker, the updater and the command line.
///
/// Thread safety: state() and poke() from any thread.
class RuleRefresher {
 public:
  /// Receives each new rule set, on the refresher's thread or, for the first, within start(). The
  /// refresher keeps no former one: a receiver that must not free a large set on just any thread
  /// sees to that.
  using Sink = std::function<void(std::shared_ptr<const RuleSet>)>;

  /// `thread_started` as in RedisOptions.
  RuleRefresher(RuleSourceOptions options, RuleSet::Options build_options, Sink sink,
                LogCallback log, ThreadCallback thread_started = {});
  /// As stop().
  ~RuleRefresher();
  RuleRefresher(const RuleRefresher&) = delete;
  RuleRefresher& operator=(const RuleRefresher&) = delete;

  /// Waits for the first load, at most `wait`, then goes on in the background. Not ok (retryable)
  /// when no source had rules yet; the refresher goes on trying.
  Status start(std::chrono::milliseconds wait);

  /// Stops and joins the thread; state() stays what it is. A second call does nothing.
  void stop() noexcept;

  /// For tests and benches: looks at the source now rather than at the next poll.
  void poke() noexcept;

  [[nodiscard]] RefreshState state() const;

 private:
  class RuleThread;
  std::unique_ptr<RuleThread> impl_;
};

/// Loads once from PostgreSQL (a libpq connection string). `quarantined` gets the rows that were
/// left out because they cannot be rules; without it, such a row refuses the whole.
Result<RuleSetSpec> load_from_postgres(const std::string& conninfo,
                                       std::chrono::milliseconds timeout,
                                       std::vector<std::string>* quarantined = nullptr);

}  // namespace fcap::sources
