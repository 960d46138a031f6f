#include "cli/audit.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

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

void Audit::add(const events::Event& event, Instant published_at, bool fail_open) {
  ++report_.messages;
  if (event.kind != events::Event::Kind::kSeen ||
      !event.user_id.starts_with(options_.user_prefix)) {
    ++report_.skipped;
    return;
  }
  auto user = users_.find(event.user_id);
  if (user == users_.end()) user = users_.emplace(std::string(event.user_id), History{}).first;
  user->second.push_back({.entry = {.time = event.time,
                                    .campaign = ledger::id_hash(event.campaign_id),
                                    .creative = ledger::id_hash(event.creative_id),
                                    .type = event.type,
                                    .fingerprint = ledger::fingerprint(event.event_id)},
                          .published_at = published_at,
                          .fail_open = fail_open});
}

void Audit::add_skipped() noexcept {
  ++report_.messages;
  ++report_.skipped;
}

void Audit::keep_distinct(History& history, AuditReport& report) {
  std::set<Identity> seen;
  const auto repeated = std::remove_if(history.begin(), history.end(), [&](const Published& event) {
    return !seen.insert(identity_of(event.entry)).second;
  });
  report.repeated += static_cast<std::uint64_t>(history.end() - repeated);
  history.erase(repeated, history.end());
}

void Audit::count_over_cap(const History& history) {
  rules::Evaluator evaluator;
  ledger::Ledger before;
  const auto capped = [&](const ledger::Ledger& ledger, const ledger::Entry& shown) {
    const std::array<rules::CandidateKey, 1> candidate{{{shown.campaign, shown.creative}}};
    std::array<Verdict, 1> verdict;
    evaluator.evaluate({.rules = *rules_, .ledger = ledger, .now = shown.time}, candidate, verdict);
    return !verdict[0].allowed;
  };
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Published& shown = history[i];
    if (shown.entry.type != EventType::kImpression) continue;
    if (capped(before, shown.entry)) {
      ++report_.over_cap;
      ledger::Ledger visible;
      for (std::size_t j = 0; j < i; ++j) {
        if (history[j].published_at + options_.propagation <= shown.published_at) {
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

Status Audit::compare_user(RecordReader& records, const std::string& user, const History& history) {
  const auto record = records.read(user);
  if (!record.ok()) return record.status();
  ledger::Ledger ledger;
  if (ledger.decode(record.value().value_or(std::string())) != ledger::DecodeCode::kOk) {
    ++report_.unreadable;
  }
  std::set<Identity> expected;
  for (const Published& event : history) expected.insert(identity_of(event.entry));
  for (const ledger::Run& run : ledger.runs()) {
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      ++report_.counted;
      if (expected.erase(identity_of(ledger.entry(run, i))) == 0) ++report_.extra;
    }
  }
  report_.lost += expected.size();
  return {};
}

Result<AuditReport> Audit::compare(RecordReader& records) {
  for (auto& [user, history] : users_) {
    keep_distinct(history, report_);
    report_.produced += history.size();
    count_over_cap(history);
    if (Status status = compare_user(records, user, history); !status.ok()) return status;
  }
  report_.users = users_.size();
  return report_;
}

}  // namespace fcap::cli
