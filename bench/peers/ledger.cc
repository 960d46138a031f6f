// fcap's own: one packed record per user, appended to; the reader decodes it and applies the rule.
// Throughput is measured through the Checker; this is for filling Redis and for the same cases of
// correctness.
#include "ledger/ledger.h"

#include <fcap/rule_set.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"
#include "peers/command_words.h"
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

  std::uint32_t record(std::string& wire, std::string_view user,
                       std::span<const Impression> impressions) override {
    entries_.clear();
    for (const Impression& event : impressions) {
      entries_.push_back({.time = event.time,
                          .campaign = ledger::id_hash(event.campaign),
                          .creative = 0,
                          .type = EventType::kImpression,
                          .fingerprint = event.fingerprint});
    }
    bytes_.clear();
    ledger::append_entries(entries_, bytes_);
    ledger::user_key("fcap", user, key_);
    redis::append_command(wire, {"APPEND", key_, bytes_});
    redis::append_command(wire, {"EXPIRE", key_, kRetentionS});
    return 2;
  }

  std::uint32_t ask(std::string& wire, const Question& question) override {
    ledger::user_key("fcap", question.user, key_);
    redis::append_command(wire, {"GET", key_});
    return 1;
  }

  bool read(const Question& question, std::uint32_t /*index*/, const redis::Reply& reply,
            std::span<std::uint32_t> counts) override {
    if (ledger_.decode(reply.text) != ledger::DecodeCode::kOk) return false;
    candidates_.clear();
    for (const std::string& campaign : question.campaigns) {
      candidates_.push_back({.campaign = ledger::id_hash(campaign), .creative = 0});
    }
    verdicts_.resize(candidates_.size());
    evaluator_.evaluate({*rules_, ledger_, question.now, {}}, candidates_, verdicts_);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = verdicts_[i].allowed ? 0 : verdicts_[i].count;
    }
    return true;
  }

 private:
  std::shared_ptr<const RuleSet> rules_;
  rules::Evaluator evaluator_;
  ledger::Ledger ledger_;
  std::vector<ledger::Entry> entries_;
  std::vector<rules::CandidateKey> candidates_;
  std::vector<Verdict> verdicts_;
  std::string bytes_;
  std::string key_;
};

}  // namespace

std::unique_ptr<Layout> make_ledger_layout(WindowKind window) {
  return std::make_unique<LedgerLayout>(window);
}

}  // namespace fcap::bench
