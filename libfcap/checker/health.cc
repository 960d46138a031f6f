#include "checker/health.h"

#include <string>

#include "base/outside_text.h"
#include "base/time_text.h"

namespace fcap::checker {

void judge_health(CheckerHealth& health) {
  // What PostgreSQL, files and rules say; a store's texts are its own.
  health.rules_error = base::one_line(health.rules_error);
  health.segments_error = base::one_line(health.segments_error);
  for (std::string& why : health.rules_quarantined) why = base::one_line(why);
  const StoreHealth& store = health.store;
  const bool readable = store.role != ServerRole::kSentinel;
  health.ready = health.has_rules && store.connected && !store.breaker_open && readable;
  const auto add = [&](std::string problem, const std::string& detail = {}) {
    if (!detail.empty()) problem += ": " + detail;
    health.problems.push_back(std::move(problem));
  };
  if (!health.has_rules) add("no rules are loaded; nothing is capped", health.rules_error);
  if (health.has_rules && !health.rules_error.empty()) {
    add("the rules could not be refreshed; the last good ones stay in force", health.rules_error);
  }
  for (const std::string& why : health.rules_quarantined) {
    add("a rule is wrong and not in force", why);
  }
  if (!health.segments_error.empty()) {
    add("the segments could not be refreshed", health.segments_error);
  }
  if (!store.connected) add("the store is not connected", store.last_error);
  if (store.reads_replica && (!store.connected || store.breaker_open)) {
    add("checks read from a replica meanwhile, which may lack the latest events");
  }
  if (store.breaker_open)
    add("the store failed repeatedly; requests fail at once until it recovers", store.last_error);
  if (store.role == ServerRole::kSentinel) {
    add("redis.addresses names a Sentinel, which holds no data");
  }
  if (store.role == ServerRole::kReplica && !store.replica_link_up) {
    add("the store is a replica that has lost its master; its data is getting stale",
        store.role_text);
  }
  if (!store.clock_text.empty()) {
    add("the store's clock is not known, so hard calls are refused", store.clock_text);
  }
  if (store.config_state == ConfigState::kMissing) {
    add("the updater's configuration is not there; no count is complete, and hard calls are "
        "refused",
        store.config_text);
  }
  if (store.config_state == ConfigState::kDiffers) {
    add("the configuration differs from the updater's", store.config_text);
  }
  if (store.config_state == ConfigState::kUnknown && !store.config_text.empty()) {
    add("the updater's configuration is not known", store.config_text);
  }
  if (store.missing_before) {
    add("the updater is rereading lost events; counts that reach further back than this may be "
        "incomplete",
        base::format_instant(*store.missing_before));
  }
}

}  // namespace fcap::checker
