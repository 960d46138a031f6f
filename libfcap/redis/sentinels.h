#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcap/redis_options.h>
#include <fcap/status.h>

#include "base/backoff.h"
#include "redis/name_lookups.h"
#include "redis/node_session.h"
#include "redis/replica_list.h"
#include "redis/resolver.h"
#include "redis/sentinel_answers.h"

namespace fcap::redis {

/// Knows the master of one name by asking the Sentinels, on a thread of its own: when a link needs
/// an address, and every second, so that a link leaves a master that was replaced but still
/// answers.
///
/// It asks rather than subscribes to +switch-master: a subscription may die unnoticed, and what was
/// published before it began is lost, so that asking would be needed beside it anyway. A question
/// per second on a connection that is kept costs a Sentinel next to nothing.
///
/// Each question goes to the next Sentinel, because one that the network has cut off from the
/// others keeps naming a master that they have replaced. Which answer counts: SentinelAnswers.
///
/// Thread safety: all functions from any thread, except start() and close_descriptors().
class Sentinels {
 public:
  using Callback = Resolver::Callback;
  using Report = std::function<void(LogLevel, const std::string&)>;

  /// `changed` is called on the thread when the Sentinels name another master than before.
  /// `options` must outlive this.
  Sentinels(const RedisOptions& options, std::vector<Address> sentinels, CredentialsNow credentials,
            Report report, std::function<void()> changed);
  /// Ends the thread promptly; no callback is called afterwards.
  ~Sentinels();
  Sentinels(const Sentinels&) = delete;
  Sentinels& operator=(const Sentinels&) = delete;

  [[nodiscard]] Status start();
  /// Asks now. The callback is called on the thread, once, unless this is destroyed first.
  void find(Callback callback);
  /// The master that was named last is unreachable or is no master.
  void doubt();
  /// Grows whenever another master is named.
  [[nodiscard]] std::uint64_t changes() const noexcept {
    return changes_.load(std::memory_order_acquire);
  }
  /// Whether `endpoint` is the master that was named last.
  [[nodiscard]] bool is_master(const std::string& endpoint) const;
  /// The master that was named last and the Sentinel that did, for people; empty while none has.
  [[nodiscard]] std::string master_text() const;
  [[nodiscard]] std::string sentinel_text() const;
  /// The master's host as it was named last: a name or a number.
  [[nodiscard]] std::string master_host() const;
  /// The replicas that were named last and that no Sentinel takes to be down; always none with
  /// RedisReplicaReads::kNever.
  [[nodiscard]] std::vector<KnownReplica> replicas() const;
  /// For a forked child, where the thread does not exist.
  void close_descriptors() noexcept;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Sentinel {
    Sentinel(Address at, NodeSession::AccountNow account, int stop_fd)
        : address(std::move(at)), session(std::move(account), stop_fd) {}

    const Address address;
    NodeSession session;
    TimePoint silent_until = TimePoint::min();  // others are asked first
  };

  void run();
  [[nodiscard]] Result<Endpoints> ask_next();
  [[nodiscard]] Result<NamedMaster> ask(Sentinel& sentinel);
  [[nodiscard]] std::size_t note_answer(std::size_t index, NamedMaster named);
  void note_master(const Result<Endpoints>& found);
  void ask_replicas();
  [[nodiscard]] bool is_stopping() const;

  const RedisOptions& options_;
  const Report report_;
  const std::function<void()> changed_;
  base::Jitter jitter_;
  int stop_fd_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;               // guarded by mutex_
  std::vector<Callback> waiting_;       // guarded by mutex_
  Endpoints master_;                    // guarded by mutex_
  std::string master_host_;             // guarded by mutex_
  std::string sentinel_;                // guarded by mutex_
  std::vector<KnownReplica> replicas_;  // guarded by mutex_
  std::atomic<std::uint64_t> changes_{0};
  std::atomic<bool> doubted_{false};

  // What follows is the thread's alone.
  std::vector<std::unique_ptr<Sentinel>> sentinels_;
  std::size_t next_ = 0;
  Sentinel* agrees_ = nullptr;  // the one that was asked last, if its answer is the one that counts
  SentinelAnswers answers_;
  NameLookups names_;
  std::thread thread_;
};

}  // namespace fcap::redis
