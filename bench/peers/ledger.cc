// fcap's own: one packed record per user, appended to; the reader decodes it and applies the rule.
// Throughput is measured through the Checker; this is for filling Redis and for the same cases of
// correctness.
#include <fcap/rule_set.h>

#include "harness/redis_console.h"
#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"
#include "peers/layout.h"
#include "rules/evaluate.h"

namespace fcap::bench {
namespace {

Window window_of(WindowKind kind) {
  switch (kind) {
    case WindowKind::kSliding:
      return {.length = kSlidingWindow};
    case WindowKind::kCalendar:
      return {.kind = Window::Kind::kCalendar, .unit = CalendarUnit::kMonth};
    case WindowKind::kFixed:
      return {.kind = Window::Kind::kFixed, .length = kFixedWindow};
  }
  return {};
}

class LedgerLayout final : public Layout {
 public:
  explicit LedgerLayout(WindowKind window)
      : Layout({.name = "ledger", .title = "ledger: one record per user, GET", .window = window}) {
    // A limit of 1, so that a verdict says the count wherever there is one.
    RuleSetSpec spec;
    spec.rules.push_back({.id = "each", .target = "*", .limit = 1, .window = window_of(window)});
    rules_ = RuleSet::build(std::move(spec), {.retention = kRetention}).value();
  }

  void record(redis::Request& request, std::string_view user,
              const PeerImpression& impression) override {
    const ledger::Entry entry = entry_of(impression);
    std::string bytes;
    ledger::append_entries({&entry, 1}, bytes);
    ledger::user_key("fcap", user, key_);
    append(request, {"APPEND", key_, bytes});
    append(request, {"EXPIRE", key_, kRetentionS});
  }

  void ask(redis::Request& request, const PeerQuestion& question) override {
    ledger::user_key("fcap", question.user, key_);
    append(request, {"GET", key_});
  }

  bool read(const PeerQuestion& question, std::uint32_t /*index*/, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    ledger::Ledger ledger;
    if (ledger.decode(reply.text) != ledger::DecodeCode::kOk) return false;
    std::vector<rules::CandidateKey> candidates;
    for (const std::string& campaign : question.campaigns) {
      candidates.push_back({.campaign = ledger::id_hash(campaign), .creative = 0});
    }
    std::vector<Verdict> verdicts(candidates.size());
    rules::Evaluator().evaluate({*rules_, ledger, question.now, {}}, candidates, verdicts);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = verdicts[i].allowed ? 0 : verdicts[i].count;
    }
    return true;
  }

 private:
  std::shared_ptr<const RuleSet> rules_;
  std::string key_;
};

}  // namespace

ledger::Entry entry_of(const PeerImpression& impression) {
  return {.time = impression.time,
          .campaign = ledger::id_hash(impression.campaign),
          .creative = 0,
          .type = EventType::kImpression,
          .fingerprint = impression.fingerprint};
}

std::unique_ptr<Layout> make_ledger_layout(WindowKind window) {
  return std::make_unique<LedgerLayout>(window);
}

}  // namespace fcap::bench
