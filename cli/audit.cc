#include "cli/audit.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "ledger/ids.h"
#include "rules/evaluate.h"

namespace fcap::cli {
namespace {

using Identity = std::tuple<std::uint64_t, EventType, std::uint32_t>;

Identity identity_of(const ledger::Entry& entry) {
  return {entry.campaign, entry.type, entry.fingerprint};
}

}  // namespace

Audit::Audit(AuditOptions options, std::shared_ptr<const RuleSet> rules)
    : options_(std::move(options)), rules_(std::move(rules)) {}

bool Audit::is_null_user(std::string_view user) const noexcept {
  const auto& ids = options_.null_user_ids;
  return user.empty() || std::find(ids.begin(), ids.end(), user) != ids.end();
}

void Audit::add(const events::Event& event, Instant published_at, bool fail_open) {
  ++report_.messages;
  if (is_null_user(event.user_id)) {
    ++report_.null_user;
    return;
  }
  if (!event.user_id.starts_with(options_.user_prefix)) {
    ++report_.other_users;
    return;
  }
  auto found = users_.find(event.user_id);
  if (found == users_.end())
    found = users_.emplace(std::string(event.user_id), AuditedUser{}).first;
  AuditedUser& user = found->second;
  // The updater judged it by its own clock when it read the message; the time of publication is
  // the nearest to that which the topic knows.
  const bool in_future = event.time > published_at + options_.allowed_future;
  if (event.kind == events::Event::Kind::kErasure) {
    ++report_.erasures;
    if (!in_future && (!user.erased_until || *user.erased_until < event.time)) {
      user.erased_until = event.time;
      user.erasure_published_at = published_at;
    }
    return;
  }
  user.history.push_back({.entry = {.time = event.time,
                                    .campaign = ledger::id_hash(event.campaign_id),
                                    .creative = ledger::id_hash(event.creative_id),
                                    .type = event.type,
                                    .fingerprint = ledger::fingerprint(event.event_id)},
                          .published_at = published_at,
                          .fail_open = fail_open,
                          .in_future = in_future});
}

void Audit::add_rejected() noexcept {
  ++report_.messages;
  ++report_.rejected;
}

void Audit::keep_distinct(std::vector<Published>& history, AuditReport& report) {
  std::vector<Published> distinct;
  std::map<Identity, std::size_t> places;
  for (const Published& event : history) {
    const auto [place, is_new] = places.emplace(identity_of(event.entry), distinct.size());
    if (is_new) {
      distinct.push_back(event);
      continue;
    }
    ++report.repeated;
    // Where accepted copies differ, the ledger keeps the later time.
    Published& kept = distinct[place->second];
    if (ledger::is_repeated_id(kept.entry.time, event.entry.time)) ++report.repeated_ids;
    if (kept.in_future == event.in_future) {
      kept.entry.time = std::max(kept.entry.time, event.entry.time);
    } else if (kept.in_future) {
      kept = event;
    }
  }
  history = std::move(distinct);
}

void Audit::count_over_cap(const AuditedUser& user) {
  rules::Evaluator evaluator;
  ledger::Ledger before;
  const auto capped = [&](const ledger::Ledger& ledger, const ledger::Entry& shown) {
    const std::array<rules::CandidateKey, 1> candidate{{{shown.campaign, shown.creative}}};
    std::array<Verdict, 1> verdict;
    evaluator.evaluate({.rules = *rules_, .ledger = ledger, .now = shown.time}, candidate, verdict);
    return !verdict[0].allowed;
  };
  const std::vector<Published>& history = user.history;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Published& shown = history[i];
    if (shown.in_future) continue;
    if (shown.entry.type == EventType::kImpression && capped(before, shown.entry)) {
      ++report_.over_cap;
      ledger::Ledger visible;
      for (std::size_t j = 0; j < i; ++j) {
        if (!history[j].in_future &&
            history[j].published_at + options_.propagation <= shown.published_at) {
          visible.merge(history[j].entry);
        }
      }
      if (!capped(visible, shown.entry)) {
        ++report_.over_cap_in_flight;
      } else if (shown.fail_open) {
        ++report_.over_cap_fail_open;
      }
    }
    before.merge(shown.entry);
  }
}

void Audit::classify_missing(const Published& event, const ledger::Ledger& ledger,
                             const AuditedUser& user, Instant now) {
  const Instant time = event.entry.time;
  const auto erased_until = std::max(ledger.erased_before(), user.erased_until);
  if (time <= now - options_.retention) {
    ++report_.expired;
  } else if (erased_until && time <= *erased_until) {
    ++report_.erased;
  } else if (event.in_future) {
    ++report_.in_future;
  } else if (ledger.complete_since() && time < *ledger.complete_since()) {
    ++report_.trimmed;
  } else if (event.published_at + options_.propagation > now) {
    ++report_.in_flight;
  } else {
    ++report_.lost;
  }
}

void Audit::compare_user(const AuditedUser& user, const ledger::Ledger& ledger, Instant now) {
  std::map<Identity, const Published*> missing;
  for (const Published& event : user.history) missing.emplace(identity_of(event.entry), &event);
  for (const ledger::Run& run : ledger.runs()) {
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      const ledger::Entry entry = ledger.entry(run, i);
      const bool explained = missing.erase(identity_of(entry)) > 0;
      // Kafka may have deleted the message of an entry that compaction has not dropped yet.
      if (!explained && entry.time <= now - options_.retention) continue;
      ++report_.counted;
      if (!explained) ++report_.extra;
    }
  }
  for (const auto& [identity, event] : missing) classify_missing(*event, ledger, user, now);
  const bool erasure_counts = user.erased_until && *user.erased_until > now - options_.retention &&
                              user.erasure_published_at + options_.propagation <= now;
  if (erasure_counts && ledger.erased_before().value_or(Instant{}) < *user.erased_until) {
    ++report_.erasures_lost;
  }
}

Result<AuditReport> Audit::compare(const ReadRecord& read, const Clock& now) {
  ledger::Ledger ledger;
  for (auto& [id, user] : users_) {
    keep_distinct(user.history, report_);
    report_.produced += user.history.size();
    count_over_cap(user);
    const auto record = read(id);
    if (!record.ok()) return record.status();
    if (ledger.decode(record.value().value_or(std::string())) != ledger::DecodeCode::kOk) {
      ++report_.unreadable;
      continue;
    }
    compare_user(user, ledger, now());
  }
  report_.users = users_.size();
  return report_;
}

}  // namespace fcap::cli
