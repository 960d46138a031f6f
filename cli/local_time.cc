#include "cli/local_time.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "base/time_text.h"

namespace fcap::cli {

Result<LocalTime> LocalTime::of(const std::string& zone) {
  LocalTime local;
  if (zone.empty()) return local;
  Result<rules::Zone> loaded = rules::Zone::load(zone);
  if (!loaded.ok()) {
    return Status::error(StatusCode::kInvalidArgument, "--time-zone: " + loaded.status().text());
  }
  local.zone_ = std::move(loaded).value();
  return local;
}

std::string LocalTime::text(Instant instant) const {
  if (!zone_) return base::format_instant(instant);
  return base::format_instant(instant, std::chrono::milliseconds{zone_->offset_at(to_ms(instant))});
}

std::size_t LocalTime::width() const noexcept {
  return zone_ ? std::string_view("2026-11-21T15:03:00.412+01:00").size()
               : std::string_view("2026-11-21T14:03:00.412Z").size();
}

}  // namespace fcap::cli
