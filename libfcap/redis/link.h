#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/backoff.h"
#include "redis/breaker.h"
#include "redis/cluster_state.h"
#include "redis/connection.h"
#include "redis/pipeline.h"
#include "redis/poller.h"
#include "redis/resolver.h"
#include "redis/send_timing.h"
#include "redis/shared_state.h"
#include "redis/stall_watch.h"

namespace fcap::redis {

class ClusterLinks;
class DirectConnections;
class ReplicaLink;
class Successor;

/// One I/O thread's connection to one node: re-establishes it when it is lost, and decides whether
/// requests are accepted.
///
/// Thread safety: refusal(), is_ready(), reads_replica() and direct() from any thread; all else on
/// the I/O thread (shut_down() also after it).
class Link final : public EventHandler, private Redirects {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// What a link to a node of a cluster knows of it.
  struct ClusterMembership {
    ClusterLinks* links = nullptr;  ///< its thread's; null: there is no cluster
    NodeIndex node = 0;
    bool looks = false;  ///< whether it is the one of all threads' that queries the node
  };

  Link(SharedState& shared, Poller& poller, Resolver& resolver, const Address& address);
  Link(SharedState& shared, Poller& poller, Resolver& resolver, const Address& address,
       const ClusterMembership& member);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Why a request would be refused now.
  [[nodiscard]] std::optional<TransportCode> refusal() const noexcept;
  /// Whether it is connected.
  [[nodiscard]] bool is_ready() const noexcept { return ready_.load(std::memory_order_relaxed); }
  /// Whether reads that may be stale go to a replica now.
  [[nodiscard]] bool reads_replica() const noexcept;
  /// Null: this link has none.
  [[nodiscard]] DirectConnections* direct() const noexcept { return direct_.get(); }

  void start(TimePoint now);
  /// Whether it was started and has not been retired since.
  [[nodiscard]] bool is_active() const noexcept { return active_; }
  /// Closes the connection until the next start(), if nothing is under way and the last request
  /// came at least `idle_min` ago; otherwise does nothing and gives false.
  [[nodiscard]] bool retire(TimePoint now, std::chrono::seconds idle_min);
  void admit(Request& request, TimePoint now);
  /// Does what is due and sends waiting requests, unless it holds them back.
  void tick(TimePoint now);
  /// Whether tick() has held back requests: replies on other sockets may bring more to send
  /// along. If no socket has any, the owner calls send_held().
  [[nodiscard]] bool holds_back() const noexcept { return held_; }
  void send_held(TimePoint now);
  /// While replies are processed: sends what waits if that is enough for a send of its own.
  void send_early();
  void on_event(bool readable, bool writable, TimePoint now) override;
  /// When tick() is next needed, if nothing else happens.
  [[nodiscard]] TimePoint next_time() const noexcept;
  /// Finishes everything with kUnavailable, for good.
  void shut_down();
  /// The thread went to sleep at `asleep_at`, until `planned` at most, and woke up at `now`.
  void woke(TimePoint asleep_at, TimePoint planned, TimePoint now) noexcept {
    stalls_.woke(asleep_at, planned, now);
  }
  /// For a forked child: closes the descriptor and tells nobody.
  void close_descriptor() noexcept;

 private:
  friend class DirectConnection;
  friend class ReplicaLink;
  friend class Successor;
  enum class State : std::uint8_t { kResting, kResolving, kConnecting, kGreeting, kReady };
  enum class Admission : std::uint8_t { kTake, kDown, kBreakerOpen };
  /// The renewal of a connection that has become too old: its name is looked up again, and another
  /// connection is made and greeted while requests still use this one. Then later requests wait
  /// until those that were sent have been answered, and the other connection takes over.
  enum class Renewal : std::uint8_t { kNone, kResolving, kConnecting, kDraining };

  /// Commands of the link's own: the greeting, a PING as the breaker's probe, and now and then
  /// questions about the server and its configuration.
  class OwnRequest final : public Request {
   public:
    enum class QuestionKind : std::uint8_t { kOther, kHello, kRole, kCluster, kTime, kConfig };
    /// One more command; `name` is what errors call it. Only kOther must be answered without error.
    void ask(QuestionKind question, std::initializer_list<std::string_view> words,
             std::string name = {});
    /// Forgets commands and answers.
    void clear();

    void on_reply(std::uint32_t index, const Reply& reply) noexcept override;
    void on_done(TransportCode code) noexcept override;

    enum class OwnOutcome : std::uint8_t { kNone, kPending, kAnswered, kFailed };
    OwnOutcome outcome = OwnOutcome::kNone;
    std::string error;       // the first error reply to a command that must be answered
    std::string error_name;  // of which command
    // The first error reply to any command. A server that accepts no more clients sends one error,
    // whatever the first command was, and closes the connection.
    std::string first_error;
    ServerFacts facts;
    bool has_role = false;
    bool has_time = false;
    std::optional<Reply::Kind> config_kind;
    std::string config_text;

   private:
    struct OwnQuestion {
      QuestionKind question = QuestionKind::kOther;
      std::string name;
    };
    std::vector<OwnQuestion> asked_;
  };

  void redirect(Request* request, std::string_view error) override;
  void count_ready(bool ready) noexcept;
  void advance_epoch() noexcept;
  [[nodiscard]] std::uint64_t epoch() const noexcept;
  [[nodiscard]] bool looks_at(const std::string& key) const noexcept;
  void take_clock();
  void begin_attempt(TimePoint now);
  void resolve();
  [[nodiscard]] Endpoints known_endpoints() const;
  [[nodiscard]] static std::string why_no_master(const SharedState& shared,
                                                 const ServerFacts& facts);
  [[nodiscard]] std::string server_name() const;
  void note_peer(const Endpoint& endpoint);
  void doubt_server();
  void follow_master(TimePoint now);
  void take_resolved(TimePoint now);
  void plan_renewal(TimePoint now);
  void renew(TimePoint now);
  void make_successor(Endpoints endpoints, TimePoint now);
  void follow_successor(TimePoint now);
  void lose_former(const std::string& why, TimePoint now);
  void switch_over(TimePoint now);
  void put_off_renewal(TimePoint now);
  void fail_renewal(const std::string& why, TimePoint now);
  void end_renewal();
  void try_next_endpoint(TimePoint now, std::string last_failure);
  static void ask_greeting(const SharedState& shared, OwnRequest& greeting);
  /// Why the server that has answered is of no use; empty: it is.
  [[nodiscard]] static std::string wrong_with(const SharedState& shared,
                                              const OwnRequest& greeting);
  void greet(TimePoint now);
  void on_greeted(TimePoint now);
  void use(const Endpoint& endpoint, const ServerFacts& facts, const char* news, TimePoint now);
  void look(TimePoint now);
  void take_look(TimePoint now);
  [[nodiscard]] TimePoint::duration look_every(TimePoint now) const noexcept;
  void take_role();
  void take_config();
  void forget_config();
  void fail_attempt(const std::string& why, TimePoint now);
  void lose(const std::string& why, TimePoint now);
  void note_unfinished(TimePoint now);
  void rest(TimePoint now);
  void close_connection();
  [[nodiscard]] bool receive(TimePoint now);
  void send_meanwhile(TimePoint now);
  void send_unless_held(TimePoint now);
  void send(TimePoint now);
  void watch_output();
  void fail_connection(const std::string& why, TimePoint now);
  void check_deadlines(TimePoint now);
  void report_stall(StallWatch::LateCause cause);
  /// When an overdue reply ends the connection; time in which nothing was read does not count.
  [[nodiscard]] TimePoint stale_at() const noexcept;
  void check_probe(TimePoint now);
  [[nodiscard]] bool after_replies(TimePoint now);
  void note_failures(std::size_t count, TimePoint now);
  void serve_direct(TimePoint now);
  void serve_replica(TimePoint now);
  void update_gate();
  void report(LogLevel level, const std::string& text);

  SharedState& shared_;
  Poller& poller_;
  Resolver& resolver_;
  const Address address_;
  const ClusterMembership member_;
  ClusterState::NodeCounts* const node_;  // null: there is no cluster
  // What messages call the server: the address, or with Sentinels the master's name and where it
  // is.
  std::string server_name_;

  std::atomic<Admission> gate_{Admission::kTake};
  std::atomic<bool> ready_{false};

  State state_ = State::kResting;
  bool active_ = false;
  bool first_attempt_ = true;
  bool watching_output_ = false;
  bool held_ = false;  // requests are held back
  bool breaker_reported_closed_ = true;
  Renewal renewal_ = Renewal::kNone;
  TimePoint state_until_;  // of resting, connecting and greeting: the end
  TimePoint attempt_until_;
  TimePoint ready_since_;
  TimePoint admitted_at_;  // the latest request, in a cluster
  TimePoint renew_at_ = TimePoint::max();
  TimePoint drain_until_;
  std::uint64_t credentials_generation_ = 0;  // those of the connection
  base::Jitter jitter_;
  Endpoints endpoints_;
  std::size_t endpoint_next_ = 0;
  std::string peer_;                 // with Sentinels: the endpoint that was tried last
  bool demoted_ = false;             // where only a master will do, it has become a replica
  std::uint64_t master_change_ = 0;  // the Sentinels' latest change that was looked at
  // Whether this is the one of all links that queries the server and its configuration (look()).
  const bool looks_;
  TimePoint look_at_ = TimePoint::max();  // when look() is due
  TimePoint facts_at_;                    // when the role and the clock are queried again
  std::uint64_t config_generation_ = 0;
  OwnRequest look_;
  StallWatch stalls_;
  SendTiming send_timing_;
  TimePoint stalled_until_;
  // How much time the last request allowed. A probe gets as much: with more, a breaker would close
  // for a server that is too slow for every request.
  base::Backoff::Duration allowance_;
  base::Backoff backoff_;
  Breaker breaker_;
  Connection connection_;
  OwnRequest greeting_;
  OwnRequest probe_;
  Pipeline pipeline_;
  const std::unique_ptr<DirectConnections> direct_;
  const std::unique_ptr<ReplicaLink> replica_;  // null with RedisReplicaReads::kNever
  const std::unique_ptr<Successor> successor_;

  std::mutex resolved_mutex_;
  std::atomic<bool> has_resolved_{false};
  std::optional<Result<Endpoints>> resolved_;  // guarded by resolved_mutex_
};

}  // namespace fcap::redis
