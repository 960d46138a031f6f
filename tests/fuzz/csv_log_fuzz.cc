// A CSV log for `fcap simulate`: any bytes are safe, and each row is an event or has a reason why
// not.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/simulate/csv_log.h"
#include "events/event.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  fcap::cli::CsvLog log;
  if (const fcap::Status header = log.read_header(take_line(rest)); !header.ok()) {
    require(!header.text().empty());
    return 0;
  }
  while (!rest.empty()) {
    // A copy of just this size, so that reading past the line is caught.
    const std::string line(take_line(rest));
    fcap::events::Event event;
    if (!log.read_row(line, event)) {
      require(!log.why().empty());
      continue;
    }
    require(event.kind == fcap::events::Event::Kind::kErasure || !event.campaign_id.empty());
    for (const std::string_view id : {event.user_id, event.campaign_id, event.creative_id}) {
      require(id.size() <= line.size());
    }
  }
  return 0;
}
