#include "redis/link.h"

#include <algorithm>
#include <utility>

#include "redis/direct_connections.h"
#include "redis/replica_link.h"
#include "redis/successor.h"

namespace fcap::redis {
namespace {

constexpr std::chrono::milliseconds kProbeTimeMin{1};
constexpr std::chrono::milliseconds kProbeTimeMax{1000};

// Seeded by what differs between links, processes and machines.
base::Jitter make_jitter(const void* link) {
  return base::seeded_jitter(static_cast<std::uint64_t>(
      std::chrono::system_clock::now().time_since_epoch().count() ^
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(link))));
}

}  // namespace

Link::Link(SharedState& shared, Poller& poller, Resolver& resolver, const Address& address)
    : Link(shared, poller, resolver, address, ClusterMembership{}) {}

Link::Link(SharedState& shared, Poller& poller, Resolver& resolver, const Address& address,
           const ClusterMembership& member)
    : shared_(shared),
      poller_(poller),
      resolver_(resolver),
      address_(address),
      member_(member),
      node_(member.links != nullptr ? &shared.cluster->node(member.node) : nullptr),
      server_name_(address.text),
      jitter_(make_jitter(this)),
      looks_(member.links != nullptr
                 ? member.looks
                 : shared.links_made.fetch_add(1, std::memory_order_relaxed) == 0),
      allowance_(kProbeTimeMax),
      backoff_(shared.options.reconnect_backoff_min, shared.options.reconnect_backoff_max,
               make_jitter(this)),
      breaker_({shared.options.breaker_failures, shared.options.breaker_failure_share,
                shared.options.breaker_backoff_min, shared.options.breaker_backoff_max},
               make_jitter(&breaker_)),
      connection_(shared.options.value_bytes_max),
      // Users that wait together are of one slot by chance only.
      pipeline_({.mget_keys_max = node_ != nullptr ? 1 : shared.options.mget_keys_max},
                shared.operations,
                node_ != nullptr ? Pipeline::Cluster{.node_operations = &node_->operations,
                                                     .epoch = &node_->epoch,
                                                     .redirects = this}
                                 : Pipeline::Cluster{}),
      direct_(looks_ && shared.options.direct_connections != 0
                  ? std::make_unique<DirectConnections>(shared, poller, address_, jitter_)
                  : nullptr),
      replica_(
          shared.options.replica_reads != RedisReplicaReads::kNever
              ? std::make_unique<ReplicaLink>(
                    shared, poller, server_name_, looks_, make_jitter(this),
                    ReplicaLink::InCluster{.node = node_, .master = &address_, .redirects = this})
              : nullptr),
      successor_(std::make_unique<Successor>(shared, poller)) {
  probe_.ask(OwnRequest::QuestionKind::kOther, {"PING"}, "PING");
}

Link::~Link() = default;

std::optional<TransportCode> Link::refusal() const noexcept {
  if (shared_.stopping.load(std::memory_order_relaxed)) return TransportCode::kUnavailable;
  switch (gate_.load(std::memory_order_relaxed)) {
    case Admission::kTake:
      return std::nullopt;
    case Admission::kBreakerOpen:
      return TransportCode::kBreakerOpen;
    case Admission::kDown:
      break;
  }
  return TransportCode::kUnavailable;
}

bool Link::reads_replica() const noexcept {
  return replica_ && replica_->takes_reads() && !shared_.stopping.load(std::memory_order_relaxed);
}

void Link::start(TimePoint now) {
  active_ = true;
  admitted_at_ = now;
  stalls_ = {};
  begin_attempt(now);
}

void Link::admit(Request& request, TimePoint now) {
  if (request.may_be_stale && request.deadline > now && reads_replica()) {
    return replica_->admit(request, now);
  }
  std::optional<TransportCode> ended = refusal();
  if (!ended && request.deadline <= now && !request.patient) ended = TransportCode::kTimeout;
  // Waiting requests are abandoned with their connection, so this holds until the request is sent.
  // A link that is not connected yet would send it to an unknown server.
  if (!ended && request.epoch && (state_ != State::kReady || *request.epoch != epoch())) {
    ended = TransportCode::kUnavailable;
  }
  if (ended) {
    shared_.operations.fetch_sub(1, std::memory_order_relaxed);
    if (node_ != nullptr) node_->operations.fetch_sub(1, std::memory_order_relaxed);
    request.on_done(*ended);
    return;
  }
  if (node_ != nullptr) admitted_at_ = now;
  allowance_ =
      std::clamp<base::Backoff::Duration>(request.deadline - now, kProbeTimeMin, kProbeTimeMax);
  pipeline_.add(request, now);
}

void Link::tick(TimePoint now) {
  if (!active_) return serve_direct(now);
  if (has_resolved_.load(std::memory_order_acquire)) take_resolved(now);
  if (state_ == State::kResting && now >= state_until_) begin_attempt(now);
  if (state_ == State::kConnecting && now >= state_until_) {
    try_next_endpoint(now, connection_.overdue());
  }
  check_deadlines(now);
  check_probe(now);
  follow_master(now);
  renew(now);
  look(now);
  serve_replica(now);
  send_unless_held(now);
  serve_direct(now);
}

Link::TimePoint Link::next_time() const noexcept {
  if (!active_) return direct_ ? direct_->next_time() : TimePoint::max();
  TimePoint next = std::min(pipeline_.next_deadline(), TimePoint::max());
  if (state_ == State::kResting || state_ == State::kConnecting)
    next = std::min(next, state_until_);
  if (state_ == State::kReady) {
    next = std::min({next, breaker_.probe_at(), look_at_});
    if (renewal_ == Renewal::kNone) next = std::min(next, renew_at_);
    if (renewal_ == Renewal::kDraining) {
      next = std::min(next, drain_until_);
    } else if (replica_) {
      next = std::min(next, replica_->next_question_for_master());
    }
    next = std::min(next, successor_->next_time());
    next = std::min(next, stale_at());
  }
  if (replica_) next = std::min(next, replica_->next_time());
  return direct_ ? std::min(next, direct_->next_time()) : next;
}

void Link::shut_down() {
  active_ = false;
  end_renewal();
  if (replica_) replica_->shut_down();
  close_connection();
  if (direct_) direct_->shut_down(std::chrono::steady_clock::now());
  state_ = State::kResting;
  state_until_ = TimePoint::max();
  pipeline_.abandon_sent(TransportCode::kUnavailable);
  pipeline_.abandon_waiting(TransportCode::kUnavailable);
}

void Link::close_descriptor() noexcept {
  connection_.abandon();
  successor_->close_descriptor();
  if (direct_) direct_->close_descriptors();
  if (replica_) replica_->close_descriptor();
}

// --- Connecting.

void Link::begin_attempt(TimePoint now) {
  shared_.credentials.look_soon();
  attempt_until_ = now + shared_.options.connect_timeout;
  endpoint_next_ = 0;
  endpoints_ = known_endpoints();
  if (!endpoints_.empty()) return try_next_endpoint(now, {});
  state_ = State::kResolving;
  resolve();
}

void Link::take_resolved(TimePoint now) {
  std::optional<Result<Endpoints>> resolved;
  {
    const std::lock_guard lock(resolved_mutex_);
    resolved = std::exchange(resolved_, std::nullopt);
    has_resolved_.store(false, std::memory_order_relaxed);
  }
  if (resolved && state_ == State::kReady && renewal_ == Renewal::kResolving) {
    // An unavailable name service is no reason to leave a server that answers.
    if (!resolved->ok()) return fail_renewal(resolved->status().text(), now);
    return make_successor(std::move(*resolved).value(), now);
  }
  if (!resolved || state_ != State::kResolving) return;
  if (!resolved->ok()) return fail_attempt(resolved->status().text(), now);
  endpoints_ = std::move(*resolved).value();
  attempt_until_ = now + shared_.options.connect_timeout;
  try_next_endpoint(now, "the name has no address");
}

// A name may have several addresses, and the first may not answer. The remaining time is divided
// among the remaining addresses.
void Link::try_next_endpoint(TimePoint now, std::string last_failure) {
  close_connection();
  pipeline_.abandon_sent(TransportCode::kUnavailable);
  credentials_generation_ = shared_.credentials.generation();
  const auto tls = shared_.credentials.current().tls;
  while (endpoint_next_ < endpoints_.size() && now < attempt_until_) {
    const auto left = static_cast<base::Backoff::Duration::rep>(endpoints_.size() - endpoint_next_);
    const Endpoint& endpoint = endpoints_[endpoint_next_++];
    note_peer(endpoint);
    if (const Status opened = connection_.open(endpoint, tls, server_name()); !opened.ok()) {
      last_failure = opened.text();
      continue;
    }
    state_ = State::kConnecting;
    state_until_ = now + (attempt_until_ - now) / left;
    watching_output_ = true;
    poller_.watch(connection_.fd(), true, *this);
    return;
  }
  fail_attempt(last_failure, now);
}

void Link::fail_attempt(const std::string& why, TimePoint now) {
  doubt_server();
  rest(now);
  report(LogLevel::kWarning, "cannot connect: " + why);
  note_failures(1, now);
  update_gate();
  pipeline_.abandon_waiting(TransportCode::kUnavailable);
}

void Link::lose(const std::string& why, TimePoint now) {
  if (renewal_ == Renewal::kDraining && successor_->is_ready()) return lose_former(why, now);
  if (now - ready_since_ >= shared_.options.reconnect_backoff_max) backoff_.reset();
  close_connection();
  rest(now);
  update_gate();
  if (node_ != nullptr) doubt_server();
  report(LogLevel::kWarning, "connection lost: " + why);
  note_unfinished(now);
  pipeline_.abandon_waiting(TransportCode::kUnavailable);
  check_probe(now);
}

// What was sent on the connection that is lost.
void Link::note_unfinished(TimePoint now) {
  const std::size_t unfinished = pipeline_.abandon_sent(TransportCode::kUnavailable);
  shared_.reconnects.fetch_add(1, std::memory_order_relaxed);
  shared_.failures.fetch_add(unfinished, std::memory_order_relaxed);
  note_failures(unfinished, now);
}

void Link::fail_connection(const std::string& why, TimePoint now) {
  if (state_ == State::kReady) {
    lose(why, now);
  } else if (state_ == State::kGreeting && !greeting_.first_error.empty()) {
    // What the server said before it closed: "ERR max number of clients reached".
    try_next_endpoint(now, why + ": " + greeting_.first_error);
  } else {
    try_next_endpoint(now, why);
  }
}

void Link::rest(TimePoint now) {
  first_attempt_ = false;
  end_renewal();
  state_ = State::kResting;
  state_until_ = now + backoff_.next();
  forget_config();
}

void Link::close_connection() {
  if (connection_.fd() < 0) return;
  poller_.unwatch(connection_.fd());
  connection_.close();
  if (state_ != State::kReady) return;
  count_ready(false);
  advance_epoch();
  if (direct_) direct_->on_link_gone(std::chrono::steady_clock::now());
}

// --- Deadlines.

void Link::check_deadlines(TimePoint now) {
  // While this thread was held up, answers may have waited to be read and requests to be sent. That
  // is not a failure of the server, even for requests that expire while this thread catches up.
  const StallWatch::LateCause cause = stalls_.cause(now);
  if (cause != StallWatch::LateCause::kNone) {
    pipeline_.excuse();
    stalled_until_ = now;
  }
  // Nor does the server hear of requests that wait for the end of a renewal.
  if (renewal_ == Renewal::kDraining) pipeline_.excuse();
  if (const auto expired = pipeline_.expire(now); expired.count != 0) {
    shared_.timeouts.fetch_add(expired.count, std::memory_order_relaxed);
    if (cause != StallWatch::LateCause::kNone) report_stall(cause);
    note_failures(expired.failures, now);
  }
  if (state_ == State::kGreeting && greeting_.outcome == OwnRequest::OwnOutcome::kFailed) {
    return try_next_endpoint(now, "no answer to the greeting");
  }
  if (state_ != State::kReady || now < stale_at()) return;
  pipeline_.find_oldest_tombstone();
  if (now >= stale_at()) lose("a reply is overdue by more than the option stale_reset", now);
}

void Link::report_stall(StallWatch::LateCause cause) {
  shared_.own_stalls.fetch_add(1, std::memory_order_relaxed);
  shared_.log_thinned(
      LogLevel::kWarning,
      cause == StallWatch::LateCause::kBusy
          ? "redis: an I/O thread was held up, probably by a callback that takes long: let the "
            "option executor run callbacks"
          : "redis: an I/O thread woke up late: this machine is overloaded");
}

Link::TimePoint Link::stale_at() const noexcept {
  const TimePoint oldest = pipeline_.oldest_tombstone();
  if (oldest == TimePoint::max()) return oldest;
  // A server whose replies keep coming is slow, not gone.
  return std::max({oldest, stalled_until_, pipeline_.progress_at()}) + shared_.options.stale_reset;
}

// --- The breaker.

void Link::note_failures(std::size_t count, TimePoint now) {
  if (count == 0) return;
  breaker_.on_failures(count, now);
  update_gate();
}

void Link::serve_direct(TimePoint now) {
  if (!direct_) return;
  const DirectConnections::Met met = direct_->tick(now);
  // What was answered before the breaker opened says nothing of the server as it is now.
  if (met.answers != 0 && breaker_.state() == Breaker::State::kClosed) {
    breaker_.on_success(met.answers, now);
    update_gate();
  }
  note_failures(met.failures, now);
}

void Link::serve_replica(TimePoint now) {
  if (!replica_) return;
  if (state_ == State::kReady && renewal_ != Renewal::kDraining) {
    Request* const question = replica_->question_for_master(now);
    if (question != nullptr) pipeline_.write_own(*question, connection_.output());
  }
  replica_->tick(now);
}

void Link::check_probe(TimePoint now) {
  // A server that is loading answers with an error.
  const bool answered = probe_.outcome == OwnRequest::OwnOutcome::kAnswered;
  if (answered && probe_.error.empty()) breaker_.on_probe_success(now);
  if (probe_.outcome == OwnRequest::OwnOutcome::kFailed || (answered && !probe_.error.empty())) {
    breaker_.on_probe_failure(now);
  }
  if (probe_.outcome != OwnRequest::OwnOutcome::kPending) {
    probe_.outcome = OwnRequest::OwnOutcome::kNone;
    // While there is no connection, making one is the probe.
    if (state_ == State::kReady && breaker_.probe_due(now)) {
      breaker_.on_probe_sent();
      probe_.error.clear();
      probe_.outcome = OwnRequest::OwnOutcome::kPending;
      probe_.deadline = now + allowance_;
      pipeline_.write_own(probe_, connection_.output());
    }
    update_gate();
  }
}

void Link::update_gate() {
  const bool closed = breaker_.state() == Breaker::State::kClosed;
  Admission gate = Admission::kDown;
  if (!closed) {
    gate = Admission::kBreakerOpen;
  } else if (state_ == State::kReady || first_attempt_) {
    gate = Admission::kTake;
  }
  gate_.store(gate, std::memory_order_relaxed);
  if (replica_) replica_->on_master(gate == Admission::kTake, std::chrono::steady_clock::now());
  if (closed != breaker_reported_closed_) {
    breaker_reported_closed_ = closed;
    if (closed) {
      shared_.breakers_open.fetch_sub(1, std::memory_order_relaxed);
    } else {
      shared_.breakers_open.fetch_add(1, std::memory_order_relaxed);
      shared_.breaker_openings.fetch_add(1, std::memory_order_relaxed);
    }
    report(
        closed ? LogLevel::kInfo : LogLevel::kWarning,
        closed ? "breaker closed" : "breaker open: requests fail at once until a probe succeeds");
  }
}

// Reconnecting continues for as long as the server is unavailable, and would log the same again and
// again.
void Link::report(LogLevel level, const std::string& text) {
  if (level == LogLevel::kWarning) shared_.set_last_error(server_name_ + ": " + text, this);
  shared_.log_thinned(level, "redis " + server_name_ + ": " + text);
}

}  // namespace fcap::redis
