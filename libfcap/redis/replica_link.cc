#include "redis/replica_link.h"

#include <algorithm>
#include <utility>

#include "redis/sentinels.h"

namespace fcap::redis {
namespace {

constexpr std::chrono::seconds kAskEvery{1};
constexpr std::chrono::seconds kAnswerTime{2};
// A replica that has been of no use for this long is left for another one.
constexpr std::chrono::seconds kUselessMax{5};

}  // namespace

// --- The question.

RoleQuestion::RoleQuestion() {
  append_command(wire, {"ROLE"});
}

void RoleQuestion::ask(std::chrono::steady_clock::time_point now) {
  outcome = RoleOutcome::kPending;
  answer = {.asked_at = now, .answered_at = now};
  deadline = now + kAnswerTime;
}

void RoleQuestion::on_reply(std::uint32_t /*index*/, const Reply& reply) noexcept {
  answer.answered_at = std::chrono::steady_clock::now();
  ServerFacts facts;
  facts.take_role(reply);
  role = facts.role;
  answer.link_up = facts.replica_link_up;
  const std::size_t at = role == ServerRole::kMaster ? 1 : 4;
  answer.position = reply.elements.size() > at ? reply.elements[at].integer : -1;
}

void RoleQuestion::on_done(TransportCode code) noexcept {
  outcome = code == TransportCode::kOk ? RoleOutcome::kAnswered : RoleOutcome::kFailed;
}

// --- What the link asks for.

ReplicaLink::ReplicaLink(SharedState& shared, Poller& poller, std::string place, bool tells,
                         const base::Jitter& jitter, InCluster cluster)
    : shared_(shared),
      poller_(poller),
      cluster_(cluster),
      master_name_(std::move(place)),
      tells_(tells),
      choice_(static_cast<std::size_t>(jitter() * 1024)),
      backoff_(shared.options.reconnect_backoff_min, shared.options.reconnect_backoff_max, jitter),
      connection_(shared.options.value_bytes_max),
      pipeline_({.mget_keys_max = cluster.node != nullptr ? 1 : shared.options.mget_keys_max},
                shared.operations,
                cluster.node != nullptr
                    ? Pipeline::Cluster{.node_operations = &cluster.node->operations,
                                        .redirects = cluster.redirects}
                    : Pipeline::Cluster{}),
      watch_(shared.options.replica_reads, shared.options.replica_lag_max) {}

void ReplicaLink::admit(Request& request, TimePoint now) {
  request.by_replica = true;
  pipeline_.add(request, now);
}

void ReplicaLink::on_master(bool is_there, TimePoint now) {
  if (is_there != watch_.master_lost()) return;
  if (is_there) {
    watch_.on_master_found();
    ask_master_at_ = now;
  } else {
    watch_.on_master_lost(now);
  }
  decide(now);
}

Request* ReplicaLink::question_for_master(TimePoint now) {
  if (now < ask_master_at_ || master_question_.outcome == RoleQuestion::RoleOutcome::kPending) {
    return nullptr;
  }
  ask_master_at_ = now + kAskEvery;
  master_question_.ask(now);
  return &master_question_;
}

void ReplicaLink::tick(TimePoint now) {
  if (ended_) return;
  expire(now);
  if (state_ == State::kResting && now >= until_) begin(now);
  if (state_ == State::kConnecting && now >= until_) drop(connection_.overdue(), now);
  if (state_ == State::kGreeting && now >= until_) drop("no answer to the greeting", now);
  take_answers(now);
  ask(now);
  send(now);
  decide(now);
}

ReplicaLink::TimePoint ReplicaLink::next_time() const noexcept {
  if (ended_) return TimePoint::max();
  TimePoint next = std::min(pipeline_.next_deadline(), stale_at());
  next = std::min(next, state_ == State::kReady ? ask_at_ : until_);
  return takes_reads() ? std::min(next, watch_.until()) : next;
}

ReplicaLink::TimePoint ReplicaLink::next_question_for_master() const noexcept {
  return master_question_.outcome == RoleQuestion::RoleOutcome::kPending ? TimePoint::max()
                                                                         : ask_master_at_;
}

void ReplicaLink::shut_down() {
  ended_ = true;
  rest(TimePoint::max());
}

void ReplicaLink::rest(TimePoint now) {
  returns_ = false;
  endpoint_.reset();
  watch_.forget_replica();
  until_ = TimePoint::min();
  if (connection_.fd() >= 0) {
    poller_.unwatch(connection_.fd());
    connection_.close();
  }
  state_ = State::kResting;
  decide(now);
  pipeline_.abandon_sent(TransportCode::kUnavailable);
  pipeline_.abandon_waiting(TransportCode::kUnavailable);
}

// --- Connecting.

std::vector<KnownReplica> ReplicaLink::known() const {
  return cluster_.node != nullptr ? shared_.cluster->replicas_of(*cluster_.master)
                                  : shared_.sentinels->replicas();
}

// A replica that can stand in for a lost master is not left for another, which cannot be judged.
bool ReplicaLink::choose(TimePoint now) {
  if (endpoint_ && watch_.master_lost() && watch_.may_read(now)) return true;
  const std::vector<KnownReplica> replicas = known();
  if (replicas.empty()) return false;
  const KnownReplica& chosen = replicas[choice_ % replicas.size()];
  if (!endpoint_ || endpoint_->text() != chosen.endpoint.text()) watch_.forget_replica();
  endpoint_ = chosen.endpoint;
  host_ = chosen.host;
  name_ = chosen.endpoint.text();
  return true;
}

void ReplicaLink::begin(TimePoint now) {
  if (!choose(now)) {
    until_ = now + kAskEvery;
    return tell(cluster_.node != nullptr
                    ? "the cluster names no replica of " + master_name_ + " whose address is known"
                    : "no replica is known to the Sentinels");
  }
  credentials_generation_ = shared_.credentials.generation();
  const Status opened = connection_.open(*endpoint_, shared_.credentials.current().tls, host_);
  state_ = State::kConnecting;
  until_ = now + shared_.options.connect_timeout;
  if (!opened.ok()) return drop(opened.text(), now);
  watching_output_ = true;
  poller_.watch(connection_.fd(), true, *this);
}

void ReplicaLink::greet(TimePoint now) {
  state_ = State::kGreeting;
  greeting_.clear();
  Link::ask_greeting(shared_, greeting_);
  if (cluster_.node != nullptr) {
    greeting_.ask(Link::OwnRequest::QuestionKind::kOther, {"READONLY"}, "READONLY");
  }
  greeting_.deadline = std::max(until_, now);
  greeting_.outcome = Link::OwnRequest::OwnOutcome::kPending;
  pipeline_.write_own(greeting_, connection_.output());
  send(now);
}

std::string ReplicaLink::wrong_with_greeting(TimePoint now) const {
  if (!greeting_.error.empty()) return greeting_.error_name + ": " + greeting_.error;
  std::string unfit =
      cluster_.node != nullptr ? greeting_.facts.unfit_for_cluster() : greeting_.facts.unfit();
  if (!unfit.empty()) return unfit;
  if (greeting_.facts.role == ServerRole::kReplica) return {};
  // The one that was promoted has all that the next master has.
  if (greeting_.facts.role == ServerRole::kMaster && watch_.master_lost() && watch_.may_read(now)) {
    return {};
  }
  return "it is no replica";
}

void ReplicaLink::take_greeting(TimePoint now) {
  greeting_.outcome = Link::OwnRequest::OwnOutcome::kNone;
  if (const std::string wrong = wrong_with_greeting(now); !wrong.empty()) return drop(wrong, now);
  state_ = State::kReady;
  returns_ = false;
  ask_at_ = well_at_ = now;
}

void ReplicaLink::drop(const std::string& why, TimePoint now) {
  const bool was_ready = state_ == State::kReady;
  if (connection_.fd() >= 0) poller_.unwatch(connection_.fd());
  connection_.close();
  state_ = State::kResting;
  // While it stands in, what is not sent yet waits for one more attempt.
  returns_ = was_ready && watch_.master_lost() && watch_.may_read(now);
  until_ = returns_ ? now : now + backoff_.next();
  if (!returns_) ++choice_;
  decide(now);
  report(LogLevel::kWarning, "the connection to the replica " + name_ + " is given up: " + why);
  tell(name_ + ", not connected: " + why);
  shared_.failures.fetch_add(pipeline_.abandon_sent(TransportCode::kUnavailable),
                             std::memory_order_relaxed);
  if (!returns_) pipeline_.abandon_waiting(TransportCode::kUnavailable);
}

// --- Questions and answers.

void ReplicaLink::ask(TimePoint now) {
  if (state_ != State::kReady || now < ask_at_) return;
  ask_at_ = now + kAskEvery;
  if (question_.outcome == RoleQuestion::RoleOutcome::kPending) return;
  question_.ask(now);
  pipeline_.write_own(question_, connection_.output());
}

void ReplicaLink::take_answers(TimePoint now) {
  using RoleOutcome = RoleQuestion::RoleOutcome;
  if (master_question_.outcome == RoleOutcome::kPending) {
    watch_.note_master_silent(master_question_.answer.asked_at, now);
  } else if (std::exchange(master_question_.outcome, RoleOutcome::kNone) ==
                 RoleOutcome::kAnswered &&
             master_question_.role == ServerRole::kMaster) {
    watch_.note_master(master_question_.answer);
    ask_at_ = now;  // while both answers mean the same moment
  }
  if (question_.outcome == RoleOutcome::kPending) {
    return watch_.note_replica_silent(question_.answer.asked_at, now);
  }
  if (std::exchange(question_.outcome, RoleOutcome::kNone) == RoleOutcome::kAnswered) on_role(now);
}

void ReplicaLink::on_role(TimePoint now) {
  if (watch_.master_lost()) return;
  if (question_.role != ServerRole::kReplica) return drop("it is no replica any more", now);
  backoff_.reset();
  watch_.note_replica(question_.answer);
  const bool is_well = watch_.is_well(now);
  const std::string state = watch_.state_text(now);
  tell(name_ + ", " + state);
  if (is_well) well_at_ = now;
  if (std::exchange(was_well_, is_well) != is_well) {
    report(is_well ? LogLevel::kInfo : LogLevel::kWarning,
           "the replica " + name_ + (is_well ? " can" : " cannot") +
               " stand in for the master: " + state);
  }
  if (now - well_at_ < kUselessMax || known().size() < 2) return;
  drop(state, now);
}

// --- Traffic.

void ReplicaLink::on_event(bool readable, bool writable, TimePoint now) {
  if (state_ == State::kConnecting) {
    bool connected = false;
    if (const Status status = connection_.finish_connect(connected); !status.ok()) {
      return drop(status.text(), now);
    }
    if (connected) return greet(now);
    watching_output_ = connection_.has_output();
    return poller_.watch(connection_.fd(), watching_output_, *this);
  }
  if (readable) receive(now);
  if (writable) send(now);
}

void ReplicaLink::receive(TimePoint now) {
  if (state_ == State::kResting) return;
  pipeline_.note_progress(now);
  const Status received =
      connection_.receive([this](const Reply& reply) { return pipeline_.on_reply(reply); });
  shared_.replica_reads.fetch_add(pipeline_.take_successes(), std::memory_order_relaxed);
  if (const std::size_t errors = pipeline_.take_errors(); errors != 0) {
    shared_.note_server_errors(
        errors, name_ + ": the replica answers with an error: " + pipeline_.last_error());
    report(LogLevel::kWarning,
           "the replica " + name_ + " answers with an error: " + pipeline_.last_error());
  }
  if (!received.ok()) return drop(received.text(), now);
  if (pipeline_.take_refusals() != 0) return drop(pipeline_.last_error(), now);
  if (greeting_.outcome == Link::OwnRequest::OwnOutcome::kAnswered) take_greeting(now);
}

void ReplicaLink::send(TimePoint now) {
  if (state_ != State::kReady && state_ != State::kGreeting) return;
  do {
    if (state_ == State::kReady) pipeline_.write(connection_.output());
    if (!connection_.has_output()) break;
    if (const Status sent = connection_.flush(); !sent.ok()) return drop(sent.text(), now);
  } while (!connection_.has_output() && state_ == State::kReady);
  if (connection_.has_output() == watching_output_) return;
  watching_output_ = connection_.has_output();
  poller_.watch(connection_.fd(), watching_output_, *this);
}

void ReplicaLink::expire(TimePoint now) {
  const bool was_late = pipeline_.oldest_tombstone() != TimePoint::max();
  shared_.timeouts.fetch_add(pipeline_.expire(now).count, std::memory_order_relaxed);
  if (!was_late) late_since_ = now;
  if (now >= stale_at()) {
    pipeline_.find_oldest_tombstone();
    if (now >= stale_at()) drop("a reply is overdue by more than the option stale_reset", now);
  }
  const bool renews = shared_.credentials.generation() != credentials_generation_;
  if (renews && state_ == State::kReady && !watch_.master_lost()) {
    drop("the password or a certificate has changed", now);
  }
}

ReplicaLink::TimePoint ReplicaLink::stale_at() const noexcept {
  if (pipeline_.oldest_tombstone() == TimePoint::max()) return TimePoint::max();
  return std::max(late_since_, pipeline_.progress_at()) + shared_.options.stale_reset;
}

// --- The decision.

void ReplicaLink::decide(TimePoint now) {
  const bool reachable = state_ == State::kReady || returns_;
  const bool takes = !ended_ && reachable && watch_.may_read(now);
  if (takes_reads_.exchange(takes, std::memory_order_relaxed) == takes) return;
  if (takes) {
    shared_.replicas_read.fetch_add(1, std::memory_order_relaxed);
    report(watch_.master_lost() ? LogLevel::kWarning : LogLevel::kInfo,
           "checks read from the replica " + name_ +
               (watch_.master_lost() ? " until there is a master again"
                                     : ", which answers faster than the master") +
               "; it may lack the latest events");
    return;
  }
  shared_.replicas_read.fetch_sub(1, std::memory_order_relaxed);
  if (ended_) return;
  if (!watch_.master_lost()) {
    report(LogLevel::kInfo, "checks read from the master again");
  } else {
    report(LogLevel::kWarning,
           "checks do not read from the replica " + name_ + " any more" +
               (watch_.may_read(now) ? "" : ": its master has been lost for too long"));
  }
}

void ReplicaLink::tell(const std::string& text) {
  if (!tells_) return;
  const std::lock_guard lock(shared_.error_mutex);
  shared_.replica_text = text;
}

void ReplicaLink::report(LogLevel level, const std::string& text) {
  if (tells_) shared_.log_thinned(level, "redis " + master_name_ + ": " + text);
}

}  // namespace fcap::redis
