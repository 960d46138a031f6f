#pragma once

#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>

#include <fcap/status.h>

namespace fcap::cli {

/// Users' records, made in memory from event messages as the updater makes them in Redis: the same
/// decoder, the same appended bytes. Nothing is refused for its time, because there is no clock to
/// judge it by, and no record is trimmed.
class EventLog {
 public:
  /// Reads messages, one per line, in the order of delivery. Messages that are no events are
  /// counted, and the first of them is described by first_rejection().
  void read(std::istream& lines);

  /// A user's record; empty when there is none.
  [[nodiscard]] std::string_view record(std::string_view user) const;

  [[nodiscard]] std::size_t event_count() const noexcept { return event_count_; }
  [[nodiscard]] std::size_t rejected_count() const noexcept { return rejected_count_; }
  [[nodiscard]] const std::string& first_rejection() const noexcept { return first_rejection_; }

 private:
  std::map<std::string, std::string, std::less<>> records_;
  std::size_t event_count_ = 0;
  std::size_t rejected_count_ = 0;
  std::string first_rejection_;
};

}  // namespace fcap::cli
