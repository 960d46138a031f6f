#include "cli/explain/judge.h"

#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/instants.h"
#include "cli/stored_segments.h"
#include "explanation/explain_history.h"
#include "ledger/ids.h"

namespace fcap::cli {

Judge::Judge(const AccessSettings& access)
    : null_user_ids_(access.null_user_ids.begin(), access.null_user_ids.end()) {}

Status Judge::load(const AccessSettings& access) {
  Result<LoadedRules> loaded = load_rules(access);
  if (!loaded.ok()) return loaded.status();
  rules_ = loaded.value().rules;
  if (!loaded.value().warning.empty()) {
    warning_ += loaded.value().warning + "\n  using " + loaded.value().source + "\n";
  }
  if (!loaded.value().refused_why.empty()) warning_ += loaded.value().refused_why + "\n";
  for (const std::string& why : loaded.value().quarantined) {
    warning_ += "quarantined, not in force: " + why + "\n";
  }
  Result<StoredSegments> stored = load_segments_for(*rules_, access);
  if (!stored.ok()) return stored.status();
  segments_ = stored.value().set;
  for (const std::string& warning : stored.value().warnings) warning_ += warning + "\n";
  return {};
}

Result<std::unique_ptr<Judge>> Judge::over_redis(const AccessSettings& access) {
  std::unique_ptr<Judge> judge(new Judge(access));
  if (Status status = judge->load(access); !status.ok()) return status;
  Result<std::unique_ptr<RecordReader>> reader = RecordReader::open(access);
  if (!reader.ok()) return reader.status();
  judge->reader_ = std::move(reader).value();
  judge->warning_ += judge->reader_->config_warning(access);
  return judge;
}

Result<std::unique_ptr<Judge>> Judge::over_events(const AccessSettings& access,
                                                  const std::string& events_file) {
  std::unique_ptr<Judge> judge(new Judge(access));
  if (Status status = judge->load(access); !status.ok()) return status;
  std::ifstream file(events_file, std::ios::binary);
  if (!file) {
    return Status::error(StatusCode::kNotFound, "--events: " + events_file + " cannot be opened");
  }
  judge->events_.read(file);
  if (judge->events_.rejected_count() > 0) {
    const std::size_t rejected = judge->events_.rejected_count();
    judge->warning_ += fmt::format(
        "--events: {} of {} {}; the first: {}\n", rejected, rejected + judge->events_.event_count(),
        rejected == 1 ? "messages is not an event" : "messages are not events",
        judge->events_.first_rejection());
  }
  return judge;
}

Result<Answer> Judge::answer(const CheckQuestion& question) {
  Answer answer{.question = question,
                .explanation = {.user = question.user,
                                .at = question.at.value_or(base::wall_now()),
                                .rules = rules_,
                                .segments = segments_}};
  Explanation& explained = answer.explanation;
  if (question.user.empty() || null_user_ids_.contains(question.user)) {
    explained.reason = Reason::kNoUser;
    for (const CandidateText& candidate : question.candidates) {
      explained.candidates.push_back({.campaign = candidate.campaign,
                                      .creative = candidate.creative,
                                      .verdict = {.reason = Reason::kNoUser}});
    }
    return answer;
  }
  if (question.user.size() > ledger::kIdBytesMax) {
    return Status::error(StatusCode::kInvalidArgument, "the user id has more than 256 bytes");
  }
  if (Status status = decode(question.user, explained.record); !status.ok()) return status;
  std::vector<Candidate> candidates;
  for (const CandidateText& candidate : question.candidates) candidates.push_back(candidate.view());
  const std::vector<std::string_view> segments(question.segments.begin(), question.segments.end());
  explanation::explain_history(evaluator_, ledger_, candidates, segments, question.at.has_value(),
                               explained);
  return answer;
}

// Puts the user's record into ledger_.
Status Judge::decode(const std::string& user, RecordAccount& record) {
  std::string bytes;
  if (reader_ == nullptr) {
    bytes = events_.record(user);
  } else {
    Result<CheckedRecord> read = reader_->read_for_check(user);
    if (!read.ok()) return read.status();
    record.key = reader_->key_of(user);
    record.stale = read.value().stale;
    bytes = std::move(read.value().bytes).value_or("");
    record.missing_before = reader_->missing_before(user);
  }
  record.bytes = bytes.size();
  if (ledger_.decode(bytes) == ledger::DecodeCode::kOk) return {};
  return Status::error(StatusCode::kCorrupt, "the record of user " + user + " cannot be decoded");
}

}  // namespace fcap::cli
