#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <fcap/status.h>
#include <fcap/time.h>

#include "rules/zone.h"

namespace fcap::cli {

/// How instants are written for people: in RFC 3339, by the clock of a time zone.
///
///     auto local = LocalTime::of("Europe/Berlin");
///     local.value().text(at);  // "2026-11-21T15:03:00+01:00"
class LocalTime {
 public:
  /// UTC: "2026-11-21T14:03:00Z".
  LocalTime() = default;

  /// An empty name is UTC; an unknown one is an error that names --time-zone.
  static Result<LocalTime> of(const std::string& zone);

  [[nodiscard]] std::string text(Instant instant) const;
  /// The length of the longest text, for columns.
  [[nodiscard]] std::size_t width() const noexcept;

 private:
  std::optional<rules::Zone> zone_;
};

}  // namespace fcap::cli
