// What a Link queries: the greeting of a connection, and later, from time to time, the server's
// role and clock and the writer's configuration.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "redis/command.h"
#include "redis/direct_connections.h"
#include "redis/link.h"

namespace fcap::redis {
namespace {

constexpr std::string_view kPing = "PING";
constexpr std::chrono::seconds kLookEvery{10};
// The configuration is read this often while a gap is stated, because verdicts are incomplete and
// hard caps refuse until the gap is seen to be over.
constexpr std::chrono::seconds kGapLookEvery{1};
// It is read as often for this long after a server was connected: an updater states a loss once it
// has connected itself.
constexpr std::chrono::seconds kLossLooks{15};
constexpr std::chrono::seconds kFactsEvery{60};
constexpr std::chrono::seconds kLookTime{1};
constexpr std::chrono::seconds kClockDifferenceMax{1};

}  // namespace

// --- Commands of the link's own.

void Link::OwnRequest::ask(QuestionKind question, std::initializer_list<std::string_view> words,
                           std::string name) {
  append_word_count(wire, words.size());
  for (const std::string_view word : words) append_word(wire, word);
  asked_.push_back({question, std::move(name)});
  command_count = static_cast<std::uint32_t>(asked_.size());
}

void Link::OwnRequest::clear() {
  wire.clear();
  asked_.clear();
  error.clear();
  error_name.clear();
  first_error.clear();
  facts = {};
  has_role = has_time = false;
  config_kind.reset();
  config_text.clear();
}

void Link::OwnRequest::on_reply(std::uint32_t index, const Reply& reply) noexcept {
  const OwnQuestion& asked = asked_[index];
  const bool is_error = reply.kind == Reply::Kind::kError;
  switch (asked.question) {
    case QuestionKind::kHello:
      facts.take_hello(reply);
      break;
    case QuestionKind::kRole:
      facts.take_role(reply);
      has_role = true;
      break;
    case QuestionKind::kCluster:
      facts.take_cluster(reply);
      break;
    case QuestionKind::kTime:
      facts.take_time(reply, base::wall_now());
      has_time = true;
      break;
    case QuestionKind::kConfig:
      config_kind = reply.kind;
      config_text = std::string(reply.text);
      break;
    case QuestionKind::kOther:
      if (!is_error || !error.empty()) break;
      // A user who may only read need not be allowed to PING.
      if (asked.name == kPing && reply.text.starts_with("NOPERM")) break;
      error = std::string(reply.text);
      error_name = asked.name;
      break;
  }
  if (is_error && first_error.empty()) first_error = std::string(reply.text);
}

void Link::OwnRequest::on_done(TransportCode code) noexcept {
  outcome = code == TransportCode::kOk ? OwnOutcome::kAnswered : OwnOutcome::kFailed;
}

// --- The greeting.

void Link::ask_greeting(const SharedState& shared, OwnRequest& greeting) {
  using QuestionKind = OwnRequest::QuestionKind;
  const RedisOptions& options = shared.options;
  const std::string password = shared.credentials.current().password;
  if (!password.empty()) {
    const char* const name = "AUTH (options user, password)";
    if (options.user.empty()) {
      greeting.ask(QuestionKind::kOther, {"AUTH", password}, name);
    } else {
      greeting.ask(QuestionKind::kOther, {"AUTH", options.user, password}, name);
    }
  }
  greeting.ask(QuestionKind::kHello,
               {"HELLO", "2"});  // for the version; RESP2 is what it is already
  greeting.ask(QuestionKind::kRole, {"ROLE"});
  greeting.ask(QuestionKind::kCluster, {"CLUSTER", "INFO"});
  if (options.database != 0) {
    greeting.ask(QuestionKind::kOther, {"SELECT", std::to_string(options.database)},
                 "SELECT (option database)");
  }
  greeting.ask(QuestionKind::kOther, {kPing}, std::string(kPing));
}

void Link::greet(TimePoint now) {
  state_ = State::kGreeting;
  greeting_.clear();
  ask_greeting(shared_, greeting_);
  greeting_.deadline = std::max(state_until_, now);
  greeting_.outcome = OwnRequest::OwnOutcome::kPending;
  pipeline_.write_own(greeting_, connection_.output());
  send(now);
}

std::string Link::wrong_with(const SharedState& shared, const OwnRequest& greeting) {
  if (greeting.facts.role == ServerRole::kSentinel || greeting.error.empty()) {
    const std::string unfit =
        shared.cluster != nullptr ? greeting.facts.unfit_for_cluster() : greeting.facts.unfit();
    return unfit.empty() ? why_no_master(shared, greeting.facts) : unfit;
  }
  const std::string hint = greeting.error.starts_with("NOAUTH") ? " (set the option password)" : "";
  const std::string name = greeting.error_name.empty() ? "" : greeting.error_name + ": ";
  return name + greeting.error + hint;
}

void Link::on_greeted(TimePoint now) {
  if (const std::string wrong = wrong_with(shared_, greeting_); !wrong.empty()) {
    return try_next_endpoint(now, wrong);
  }
  state_ = State::kReady;
  first_attempt_ = false;
  count_ready(true);
  use(endpoints_[endpoint_next_ - 1], greeting_.facts, "connected", now);
}

// Begins to use a connection that has been greeted.
void Link::use(const Endpoint& endpoint, const ServerFacts& facts, const char* news,
               TimePoint now) {
  ready_since_ = now;
  breaker_.on_probe_success(now);
  plan_renewal(now);
  shared_.connections.fetch_add(1, std::memory_order_relaxed);
  advance_epoch();
  shared_.clear_last_error(this);
  update_gate();
  if (direct_) direct_->on_link_ready(endpoint, server_name());
  report(LogLevel::kInfo, news);
  if (!looks_) return;
  look_.outcome = OwnRequest::OwnOutcome::kNone;
  look_.facts = facts;
  take_role();
  look_at_ = facts_at_ = now;  // the clock, and the configuration
  // A server that was away may have lost data, which the configuration tells of, wherever it is.
  shared_.config_generation.fetch_add(1, std::memory_order_relaxed);
  shared_.loss_looks_until.store(now + kLossLooks, std::memory_order_relaxed);
  look(now);
}

// --- Periodic queries.

void Link::look(TimePoint now) {
  using QuestionKind = OwnRequest::QuestionKind;
  if (!looks_ || state_ != State::kReady || look_.outcome == OwnRequest::OwnOutcome::kPending)
    return;
  const std::uint64_t generation = shared_.config_generation.load(std::memory_order_acquire);
  if (now < look_at_ && generation == config_generation_) return;
  config_generation_ = generation;
  look_at_ = now + look_every(now);
  look_.clear();
  if (now >= facts_at_) {
    // Sentinels that are behind do not tell of a failover.
    facts_at_ = now + (shared_.sentinels != nullptr ? kLookEvery : kFactsEvery);
    look_.ask(QuestionKind::kRole, {"ROLE"});
    look_.ask(QuestionKind::kTime, {"TIME"});
  }
  {
    const std::lock_guard lock(shared_.error_mutex);
    const std::string& key = shared_.config.key();
    if (!key.empty() && looks_at(key)) look_.ask(QuestionKind::kConfig, {"GET", key});
  }
  if (look_.wire.empty()) return;
  look_.deadline = now + kLookTime;
  look_.outcome = OwnRequest::OwnOutcome::kPending;
  pipeline_.write_own(look_, connection_.output());
}

void Link::take_look(TimePoint now) {
  if (look_.outcome == OwnRequest::OwnOutcome::kPending ||
      look_.outcome == OwnRequest::OwnOutcome::kNone) {
    return;
  }
  const bool answered = look_.outcome == OwnRequest::OwnOutcome::kAnswered;
  look_.outcome = OwnRequest::OwnOutcome::kNone;
  if (answered) {
    if (look_.has_role) take_role();
    if (look_.has_time) take_clock();
    if (look_.config_kind) take_config();
  } else {
    forget_config();
  }
  look_at_ = now + look_every(now);
}

Link::TimePoint::duration Link::look_every(TimePoint now) const noexcept {
  const bool soon =
      shared_.is_gap_stated() || now < shared_.loss_looks_until.load(std::memory_order_relaxed);
  return soon ? kGapLookEvery : kLookEvery;
}

void Link::take_clock() {
  const auto difference = look_.facts.clock_difference;
  {
    const std::lock_guard lock(shared_.error_mutex);
    shared_.take_clock(server_name_, look_.facts, std::chrono::steady_clock::now());
  }
  if (!difference) {
    shared_.log_thinned(
        LogLevel::kWarning,
        "redis " + server_name_ +
            ": its clock is not known, so hard calls are refused: " + look_.facts.clock_text);
  }
  if (difference && std::chrono::abs(*difference) > kClockDifferenceMax) {
    shared_.log_thinned(LogLevel::kWarning, "redis " + server_name_ +
                                                ": its clock and this machine's differ by " +
                                                std::to_string(difference->count()) + " ms");
  }
}

void Link::take_role() {
  const ServerFacts& facts = look_.facts;
  std::string before;
  {
    const std::lock_guard lock(shared_.error_mutex);
    before = std::exchange(shared_.facts.role_text, facts.role_text);
    shared_.facts.role = facts.role;
    shared_.facts.replica_link_up = facts.replica_link_up;
  }
  if (facts.role != ServerRole::kReplica) return;
  demoted_ = shared_.sentinels != nullptr || shared_.options.master_only;
  const std::string text = "the server is a " + facts.role_text;
  if (facts.replica_link_up) {
    if (before != facts.role_text) {
      shared_.log_thinned(LogLevel::kInfo, "redis " + server_name_ + ": " + text);
    }
    return;
  }
  shared_.note_error(server_name_ + ": " + text);
  shared_.log_thinned(LogLevel::kWarning,
                      "redis " + server_name_ + ": " + text + ": what it has grows old");
}

// While the configuration cannot be read, nobody hears of a loss, at whatever node.
void Link::forget_config() {
  if (!looks_) return;
  const std::lock_guard lock(shared_.error_mutex);
  if (looks_at(shared_.config.key())) shared_.forget_config();
}

void Link::take_config() {
  const Reply reply{*look_.config_kind, 0, look_.config_text, {}};
  if (node_ != nullptr && is_redirect(reply)) {
    redirect(nullptr, reply.text);
    // Whoever has the slot now is asked at once; a node that only imports it is not.
    const std::lock_guard lock(shared_.error_mutex);
    return shared_.forget_config();
  }
  ConfigState state = ConfigState::kUnknown;
  std::string text;
  bool changed = false;
  {
    const std::lock_guard lock(shared_.error_mutex);
    changed = shared_.config.compare_with(reply, shared_.options.database);
    shared_.publish_config();
    state = shared_.config.state();
    text = shared_.config.text();
  }
  if (state != ConfigState::kAgrees) {
    shared_.log_thinned(LogLevel::kWarning, "redis " + server_name_ + ": " + text);
  } else if (changed) {
    shared_.log_thinned(LogLevel::kInfo,
                        "redis " + server_name_ + ": the updater's configuration agrees");
  }
}

}  // namespace fcap::redis
