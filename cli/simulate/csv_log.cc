#include "cli/simulate/csv_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "config/rule_words.h"
#include "config/time_text.h"
#include "events/timestamp.h"
#include "ledger/ids.h"

namespace fcap::cli {

void CsvLog::split(std::string_view line) {
  if (line.find('"') != std::string_view::npos) {
    split_quoted(line);
    return;
  }
  fields_.clear();
  for (;;) {
    const std::size_t comma = line.find(separator_);
    fields_.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

/// Fields in double quotes may hold commas; two double quotes in them are one. A field over
/// several lines is not for logs: its quote is never closed, and it is taken as it is.
void CsvLog::split_quoted(std::string_view line) {
  fields_.clear();
  unquoted_.clear();
  // Never longer than the line, so the views stay valid.
  unquoted_.reserve(line.size());
  std::size_t begin = 0;
  bool quoted = false;
  const auto end_field = [&] {
    fields_.push_back(std::string_view(unquoted_.data() + begin, unquoted_.size() - begin));
    begin = unquoted_.size();
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (!doubled) {
        quoted = !quoted;
        continue;
      }
      ++i;
    } else if (line[i] == separator_ && !quoted) {
      end_field();
      continue;
    }
    unquoted_ += line[i];
  }
  end_field();
}

std::size_t CsvLog::column(std::initializer_list<std::string_view> names) const {
  if (const auto called = names_.find(*names.begin()); called != names_.end()) {
    const auto found = std::find(fields_.begin(), fields_.end(), called->second);
    return found == fields_.end() ? kNoColumn : static_cast<std::size_t>(found - fields_.begin());
  }
  for (const std::string_view name : names) {
    const auto found = std::find(fields_.begin(), fields_.end(), name);
    if (found != fields_.end()) return static_cast<std::size_t>(found - fields_.begin());
  }
  return kNoColumn;
}

Status CsvLog::read_header(std::string_view line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (line.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (line.find(',') == std::string_view::npos) {
    for (const char other : {';', '\t'}) {
      if (line.find(other) != std::string_view::npos) separator_ = other;
    }
  }
  split(line);
  column_count_ = fields_.size();
  user_ = column({"user_id"});
  campaign_ = column({"campaign_id"});
  creative_ = column({"creative_id", "creative_or_empty"});
  time_ = column({"timestamp", "timestamp_unix_seconds"});
  type_ = column({"type"});
  imp_id_ = column({"imp_id"});
  event_id_ = column({"event_id"});
  std::string missing;
  const auto miss = [&](std::size_t found, const char* name) {
    if (found != kNoColumn) return;
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
    parsed = config::parse_instant(spelled);
  }
  if (!parsed || to_ms(*parsed) < 0) return false;
  time = *parsed;
  return true;
}

bool CsvLog::read_row(std::string_view line, events::Event& event) {
  split(line);
  if (fields_.size() != column_count_) {
    return reject(fmt::format("{} fields, the header has {}", fields_.size(), column_count_));
  }
  event.kind = events::Event::Kind::kSeen;
  event.user_id = field(user_);
  event.campaign_id = field(campaign_);
  event.creative_id = field(creative_);
  event.event_id = field(event_id_).empty() ? field(imp_id_) : field(event_id_);
  event.type = EventType::kImpression;
  if (const std::string_view type = field(type_); !type.empty()) {
    const auto known = config::value_of(config::kEventTypeWords, type);
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
  if (!read_time(field(time_), event.time)) {
    return reject(fmt::format("\"{}\" is not a timestamp", field(time_)));
  }
  return true;
}

}  // namespace fcap::cli
