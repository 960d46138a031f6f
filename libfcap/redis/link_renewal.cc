// How a Link re-establishes a connection that has become too old, or that was made with a password
// or certificates that have changed. Only a new lookup and a new connection show that a name or a
// virtual address has moved while the former server still answers.
#include <utility>

#include "redis/direct_connections.h"
#include "redis/link.h"
#include "redis/successor.h"

namespace fcap::redis {
namespace {

// How long requests wait for pending ones before the renewal is postponed.
constexpr std::chrono::milliseconds kDrainTime{50};
constexpr std::chrono::seconds kRenewalPause{10};
constexpr double kShortestShare = 0.75;
constexpr double kShareSpread = 0.5;

}  // namespace

void Link::plan_renewal(TimePoint now) {
  const base::Backoff::Duration age = shared_.options.connection_max_age;
  end_renewal();
  // Processes that were restarted together must not renew their connections together.
  const double share = kShortestShare + kShareSpread * jitter_();
  renew_at_ = age.count() == 0
                  ? TimePoint::max()
                  : now + base::Backoff::Duration(static_cast<base::Backoff::Duration::rep>(
                              static_cast<double>(age.count()) * share));
}

void Link::put_off_renewal(TimePoint now) {
  end_renewal();
  renew_at_ = now + kRenewalPause;
}

// Notes why the connection could not be renewed. It stays in use, because its server answers.
void Link::fail_renewal(const std::string& why, TimePoint now) {
  const std::string text =
      server_name_ + ": the connection cannot be renewed and stays in use: " + why;
  shared_.note_error(text);
  shared_.log_thinned(LogLevel::kWarning, "redis " + text);
  put_off_renewal(now);
}

void Link::end_renewal() {
  renewal_ = Renewal::kNone;
  successor_->close();
}

void Link::renew(TimePoint now) {
  if (state_ != State::kReady) return;
  if (renewal_ == Renewal::kConnecting || renewal_ == Renewal::kDraining) {
    return follow_successor(now);
  }
  // Noted at once, so that a renewal that is put off is not tried all the time.
  const std::uint64_t generation = shared_.credentials.generation();
  if (std::exchange(credentials_generation_, generation) != generation) renew_at_ = now;
  if (renewal_ != Renewal::kNone || now < renew_at_) return;
  if (Endpoints endpoints = known_endpoints(); !endpoints.empty()) {
    return make_successor(std::move(endpoints), now);
  }
  renewal_ = Renewal::kResolving;
  resolve();
}

void Link::make_successor(Endpoints endpoints, TimePoint now) {
  renewal_ = Renewal::kConnecting;
  successor_->begin(std::move(endpoints), server_name(), now);
  follow_successor(now);
}

void Link::follow_successor(TimePoint now) {
  successor_->tick(now);
  if (successor_->has_failed()) {
    doubt_server();
    return fail_renewal(successor_->failure(), now);
  }
  if (!successor_->is_ready()) return;
  if (renewal_ == Renewal::kConnecting) {
    renewal_ = Renewal::kDraining;
    drain_until_ = now + kDrainTime;
  }
  if (pipeline_.in_flight() == 0 && !connection_.has_output()) return switch_over(now);
  // If the server is slow just now, the renewal is tried again later.
  if (now >= drain_until_) put_off_renewal(now);
}

// The connection broke while the last of its answers were awaited. What waits was not sent yet.
void Link::lose_former(const std::string& why, TimePoint now) {
  if (node_ != nullptr) doubt_server();
  report(LogLevel::kWarning, "connection lost: " + why);
  note_unfinished(now);
  switch_over(now);
}

void Link::switch_over(TimePoint now) {
  if (now - ready_since_ >= shared_.options.reconnect_backoff_max) backoff_.reset();
  pipeline_.abandon_bound(TransportCode::kUnavailable);
  poller_.unwatch(connection_.fd());
  if (direct_) direct_->on_link_gone(now);
  successor_->hand_over(connection_);
  watching_output_ = false;
  poller_.watch(connection_.fd(), false, *this);
  credentials_generation_ = successor_->credentials_generation();
  note_peer(successor_->endpoint());
  master_change_ = 0;  // the latest change was compared with the former server
  use(successor_->endpoint(), successor_->facts(), "connected again", now);
}

}  // namespace fcap::redis
