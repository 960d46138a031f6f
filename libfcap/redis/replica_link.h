#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fcap/health.h>

#include "base/backoff.h"
#include "redis/link.h"
#include "redis/replica_list.h"
#include "redis/replica_watch.h"

namespace fcap::redis {

/// The question ROLE, to a master or a replica.
class RoleQuestion final : public Request {
 public:
  RoleQuestion();
  void ask(std::chrono::steady_clock::time_point now);
  void on_reply(std::uint32_t index, const Reply& reply) noexcept override;
  void on_done(TransportCode code) noexcept override;

  enum class RoleOutcome : std::uint8_t { kNone, kPending, kAnswered, kFailed };
  RoleOutcome outcome = RoleOutcome::kNone;
  ServerRole role = ServerRole::kUnknown;
  ReplicaWatch::PositionAnswer answer;
};

/// A link's connection to one replica of its master, over which checks are read when ReplicaWatch
/// allows it. It is kept while the master is well: how far a replica is behind can be told only
/// while the master answers, so one that is looked for after the master was lost would be of no
/// use.
///
/// Thread safety: takes_reads() from any thread; all else on the I/O thread.
class ReplicaLink final : public EventHandler {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// What a link to a node of a cluster knows of it.
  struct InCluster {
    ClusterState::NodeCounts* node = nullptr;  ///< null: there is no cluster
    const Address* master = nullptr;
    Redirects* redirects = nullptr;
  };

  ReplicaLink(SharedState& shared, Poller& poller, std::string place, bool tells,
              const base::Jitter& jitter, InCluster cluster);

  /// Whether reads that may be stale are to be given to admit() rather than to the master.
  [[nodiscard]] bool takes_reads() const noexcept {
    return takes_reads_.load(std::memory_order_relaxed);
  }
  void admit(Request& request, TimePoint now);

  /// Whether requests can be sent to the master.
  void on_master(bool is_there, TimePoint now);
  /// A question that is to be sent to the master now; null: none.
  [[nodiscard]] Request* question_for_master(TimePoint now);
  /// When there will be one.
  [[nodiscard]] TimePoint next_question_for_master() const noexcept;

  /// Does what is due and sends waiting requests.
  void tick(TimePoint now);
  [[nodiscard]] TimePoint next_time() const noexcept;
  void on_event(bool readable, bool writable, TimePoint now) override;
  /// Finishes everything with kUnavailable, until the next tick().
  void rest(TimePoint now);
  /// Does the same for good.
  void shut_down();
  void close_descriptor() noexcept { connection_.abandon(); }

 private:
  enum class State : std::uint8_t { kResting, kConnecting, kGreeting, kReady };

  [[nodiscard]] std::vector<KnownReplica> known() const;
  [[nodiscard]] bool choose(TimePoint now);
  void begin(TimePoint now);
  void greet(TimePoint now);
  void take_greeting(TimePoint now);
  [[nodiscard]] std::string wrong_with_greeting(TimePoint now) const;
  void ask(TimePoint now);
  void take_answers(TimePoint now);
  void on_role(TimePoint now);
  void expire(TimePoint now);
  void receive(TimePoint now);
  void send(TimePoint now);
  void drop(const std::string& why, TimePoint now);
  [[nodiscard]] TimePoint stale_at() const noexcept;
  void decide(TimePoint now);
  /// For health reports.
  void tell(const std::string& text);
  void report(LogLevel level, const std::string& text);

  SharedState& shared_;
  Poller& poller_;
  const InCluster cluster_;
  const std::string master_name_;  // what messages call the master
  const bool tells_;               // one of all links does
  std::atomic<bool> takes_reads_{false};

  State state_ = State::kResting;
  bool ended_ = false;
  bool returns_ = false;  // it stands in and is connected to once more, for which requests wait
  TimePoint until_ = TimePoint::min();  // of all states but kReady: the end
  std::optional<Endpoint> endpoint_;
  std::string host_;  // whose certificate is expected
  std::string name_;  // what messages call the replica
  std::size_t choice_ = 0;
  std::uint64_t credentials_generation_ = 0;
  bool watching_output_ = false;
  bool was_well_ = false;
  TimePoint well_at_;
  TimePoint late_since_;  // when the first overdue reply was noticed
  base::Backoff backoff_;
  Connection connection_;
  Link::OwnRequest greeting_;
  RoleQuestion question_;
  RoleQuestion master_question_;
  TimePoint ask_at_ = TimePoint::min();
  TimePoint ask_master_at_ = TimePoint::min();
  Pipeline pipeline_;
  ReplicaWatch watch_;
};

}  // namespace fcap::redis
