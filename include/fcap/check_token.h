#pragma once

#include <cstdint>
#include <memory>

#include <fcap/cplusplus.h>

namespace fcap {

namespace checker {
struct KeptRecord;
struct SeenRecord;
}  // namespace checker

/// What a check has seen of its user's record, for the calls that follow it: a shared note says by
/// it whether the record has room, and a hard call begins with the record itself if the check has
/// kept it (CheckOptions::keep_record). Only for the subject of that check: with the token of
/// another one, a note may be shared in a record that has no room for it. Empty by default. Cheap
/// to copy; copies share the record. May outlive the Checker. Thread safety: as an int.
class CheckToken {
 public:
  CheckToken() noexcept = default;

 private:
  friend struct checker::SeenRecord;

  bool is_known_ = false;
  std::uint32_t bytes_ = 0;
  std::uint32_t reservations_ = 0;
  std::shared_ptr<const checker::KeptRecord> kept_;
};

}  // namespace fcap
