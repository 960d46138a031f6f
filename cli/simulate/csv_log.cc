#include "cli/simulate/csv_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "events/timestamp.h"
#include "ledger/ids.h"
#include "rule_text/rule_words.h"

namespace fcap::cli {

std::size_t CsvLog::column(std::initializer_list<std::string_view> names) const {
  const auto called = names_.find(*names.begin());
  return called == names_.end() ? fields_.find(names) : fields_.find({called->second});
}

Status CsvLog::read_header(std::string_view line) {
  fields_.read_header(line);
  column_count_ = fields_.count();
  user_ = column({"user_id"});
  campaign_ = column({"campaign_id"});
  creative_ = column({"creative_id", "creative_or_empty"});
  time_ = column({"timestamp", "timestamp_unix_seconds"});
  type_ = column({"type"});
  imp_id_ = column({"imp_id"});
  event_id_ = column({"event_id"});
  std::string missing;
  const auto miss = [&](std::size_t found, const char* name) {
    if (found != CsvFields::kNone) return;
    const std::string_view plain =
        std::string_view(name).substr(0, std::string_view(name).find(' '));
    const auto called = names_.find(plain);
    missing += (missing.empty() ? "" : ", ") +
               (called == names_.end() ? std::string(name) : called->second + " (--column)");
  };
  miss(user_, "user_id");
  miss(campaign_, "campaign_id");
  miss(time_, "timestamp (or timestamp_unix_seconds)");
  if (missing.empty()) return {};
  constexpr std::size_t kShownMax = 200;
  return Status::error(StatusCode::kCorrupt,
                       fmt::format("the header line lacks {}; it is: {}", missing,
                                   line.substr(0, std::min(line.size(), kShownMax))));
}

bool CsvLog::reject(std::string why) {
  why_ = std::move(why);
  return false;
}

bool CsvLog::read_time(std::string_view text, Instant& time) {
  std::optional<Instant> parsed;
  if (events::is_json_number(text)) {
    parsed = events::parse_timestamp(text);
  } else {
    // PostgreSQL writes "2026-01-01 10:00:00+00": an offset may be hours alone.
    std::string spelled(text);
    constexpr std::size_t kOffsetBytes = 3;
    if (const auto sign = spelled.find_last_of("+-"); sign != std::string::npos &&
                                                      sign + kOffsetBytes == spelled.size() &&
                                                      spelled.find(':') != std::string::npos) {
      spelled += ":00";
    }
    parsed = base::parse_instant(spelled);
  }
  if (!parsed || to_ms(*parsed) < 0) return false;
  time = *parsed;
  return true;
}

bool CsvLog::read_row(std::string_view line, events::Event& event) {
  fields_.read(line);
  if (fields_.count() != column_count_) {
    return reject(fmt::format("{} fields, the header has {}", fields_.count(), column_count_));
  }
  event.kind = events::Event::Kind::kSeen;
  event.user_id = fields_.at(user_);
  event.campaign_id = fields_.at(campaign_);
  event.creative_id = fields_.at(creative_);
  event.event_id = fields_.at(event_id_).empty() ? fields_.at(imp_id_) : fields_.at(event_id_);
  event.type = EventType::kImpression;
  if (const std::string_view type = fields_.at(type_); !type.empty()) {
    const auto known = rule_text::value_of(rule_text::kEventTypeWords, type);
    if (known) {
      event.type = *known;
    } else if (type == "erasure") {
      event.kind = events::Event::Kind::kErasure;
    } else {
      return reject(fmt::format("unknown type \"{}\"", type));
    }
  }
  if (event.campaign_id.empty() && event.kind == events::Event::Kind::kSeen) {
    return reject("no campaign_id");
  }
  for (const std::string_view id :
       {event.user_id, event.campaign_id, event.creative_id, event.event_id}) {
    if (id.size() > ledger::kIdBytesMax) return reject("an id of more than 256 bytes");
  }
  if (!read_time(fields_.at(time_), event.time)) {
    return reject(fmt::format("\"{}\" is not a timestamp", fields_.at(time_)));
  }
  return true;
}

}  // namespace fcap::cli
