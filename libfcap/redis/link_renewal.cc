// How a Link re-establishes a connection that has become too old, or that was made with a password
// or certificates that have changed. Only a new lookup and a new connection show that a name or a
// virtual address has moved while the former server still answers.
#include <utility>

#include "redis/link.h"

namespace fcap::redis {
namespace {

// How long requests wait for pending ones before the renewal is postponed.
constexpr std::chrono::milliseconds kDrainTime{50};
// How long a new connection may take before waits for it count as failures of the server, so that
// the breaker opens and a replica may answer.
constexpr std::chrono::milliseconds kConnectingExcused{100};
constexpr std::chrono::seconds kRenewalPause{10};
constexpr double kShortestShare = 0.75;
constexpr double kShareSpread = 0.5;

}  // namespace

void Link::plan_renewal(TimePoint now) {
  const base::Backoff::Duration age = shared_.options.connection_max_age;
  renewal_ = Renewal::kNone;
  // Processes that were restarted together must not renew their connections together.
  const double share = kShortestShare + kShareSpread * jitter_();
  renew_at_ = age.count() == 0
                  ? TimePoint::max()
                  : now + base::Backoff::Duration(static_cast<base::Backoff::Duration::rep>(
                              static_cast<double>(age.count()) * share));
}

void Link::put_off_renewal(TimePoint now) {
  renewal_ = Renewal::kNone;
  renew_at_ = now + kRenewalPause;
}

void Link::drain(TimePoint now) {
  renewal_ = Renewal::kDraining;
  drain_until_ = now + kDrainTime;
  renew(now);
}

void Link::renew(TimePoint now) {
  if (state_ != State::kReady) return;
  // Noted at once, so that a renewal that is put off is not tried all the time.
  const std::uint64_t generation = shared_.credentials.generation();
  if (std::exchange(credentials_generation_, generation) != generation) renew_at_ = now;
  if (renewal_ == Renewal::kNone && now >= renew_at_) {
    endpoints_ = known_endpoints();
    if (!endpoints_.empty()) return drain(now);
    renewal_ = Renewal::kResolving;
    return resolve();
  }
  if (renewal_ != Renewal::kDraining) return;
  if (pipeline_.in_flight() != 0 || connection_.has_output()) {
    // If the server is slow just now, the renewal is tried again later.
    if (now >= drain_until_) put_off_renewal(now);
    return;
  }
  if (now - ready_since_ >= shared_.options.reconnect_backoff_max) backoff_.reset();
  pipeline_.abandon_bound(TransportCode::kUnavailable);
  renewal_ = Renewal::kConnecting;
  attempt_until_ = now + shared_.options.connect_timeout;
  renewal_excused_until_ = now + kConnectingExcused;
  endpoint_next_ = 0;
  try_next_endpoint(now, "the name has no address");
}

}  // namespace fcap::redis
