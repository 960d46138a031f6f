#pragma once

#include <memory>
#include <set>
#include <string>

#include <fcap/rule_set.h>
#include <fcap/segment_set.h>
#include <fcap/status.h>

#include "cli/check_question.h"
#include "cli/cli_settings.h"
#include "cli/event_log.h"
#include "cli/explain/answer.h"
#include "cli/record_reader.h"
#include "cli/rule_loading.h"
#include "ledger/ledger.h"
#include "rules/evaluate.h"

namespace fcap::cli {

/// Answers questions, from Redis or from a log of events, by rules that it has loaded.
class Judge {
 public:
  /// Loads the rules and segments and opens Redis.
  static Result<std::unique_ptr<Judge>> over_redis(const AccessSettings& access);
  /// Loads the rules and segments and reads the events.
  static Result<std::unique_ptr<Judge>> over_events(const AccessSettings& access,
                                                    const std::string& events_file);

  Result<Answer> answer(const CheckQuestion& question);

  /// What a person should know about the rules or events, one per line; empty: nothing.
  [[nodiscard]] const std::string& warning() const noexcept { return warning_; }

 private:
  explicit Judge(const AccessSettings& access);
  Status load(const AccessSettings& access);
  Status decode(const std::string& user, RecordAccount& record);

  std::set<std::string, std::less<>> null_user_ids_;
  std::shared_ptr<const RuleSet> rules_;
  std::shared_ptr<const SegmentSet> segments_;  // null: none are stored, or no rule asks for them
  std::string warning_;
  std::unique_ptr<RecordReader> reader_;  // null: from events_
  EventLog events_;
  ledger::Ledger ledger_;
  rules::Evaluator evaluator_;
};

}  // namespace fcap::cli
