#include "cli/event_log.h"

#include <istream>
#include <span>

#include <fmt/format.h>

#include "events/event_decoder.h"
#include "ledger/encode.h"
#include "ledger/ids.h"

namespace fcap::cli {

void EventLog::read(std::istream& lines) {
  const auto decoder = events::make_json_event_decoder();
  std::string line;
  std::size_t line_number = 0;
  while (std::getline(lines, line)) {
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    events::Event event;
    if (const auto rejected = decoder->decode_one(line, event)) {
      if (rejected_count_++ == 0) {
        first_rejection_ =
            fmt::format("line {}: {}{}{}", line_number, events::to_string(rejected->reason),
                        rejected->member.empty() ? "" : ": ", rejected->member);
      }
      continue;
    }
    ++event_count_;
    auto record = records_.find(event.user_id);
    if (record == records_.end()) {
      record = records_.emplace(std::string(event.user_id), std::string()).first;
    }
    if (event.kind == events::Event::Kind::kErasure) {
      ledger::append_erased_before(event.time, record->second);
      continue;
    }
    const ledger::Entry entry{.time = event.time,
                              .campaign = ledger::id_hash(event.campaign_id),
                              .creative = ledger::id_hash(event.creative_id),
                              .type = event.type,
                              .fingerprint = ledger::fingerprint(event.event_id)};
    ledger::append_entries(std::span(&entry, 1), record->second);
  }
}

std::string_view EventLog::record(std::string_view user) const {
  const auto record = records_.find(user);
  return record == records_.end() ? std::string_view() : std::string_view(record->second);
}

}  // namespace fcap::cli
