#include "updater/pipeline/rewind.h"

#include <algorithm>

namespace fcap::updater {

Rewind decide_rewind(const MarkCheck& check, std::optional<std::int64_t> found) {
  if (!found) {
    // No mark, and none was ever seen on this connection: reading began at the start of retention
    // and nothing says that anything was lost.
    const bool as_expected = !check.confirmed && !check.reconnected;
    return {as_expected ? Rewind::To::kNowhere : Rewind::To::kRetentionStart, 0, false};
  }
  if (check.reconnected && check.attempted == found && check.confirmed != found) {
    // The write may have been executed by the new master, while the events it speaks for were
    // acknowledged by the old one. Only the mark before it is certain.
    if (!check.confirmed) return {Rewind::To::kRetentionStart, 0, true};
    const std::int64_t certain = std::min(*check.confirmed, *found);
    if (certain >= check.position) return {};
    return {Rewind::To::kOffset, certain, true};
  }
  if (*found >= check.position) return {};
  const bool ours = check.confirmed == found || check.attempted == found;
  if (ours && !check.reconnected) return {};
  return {Rewind::To::kOffset, *found, false};
}

Start decide_start(std::optional<std::int64_t> committed, std::optional<std::int64_t> mark) {
  if (!mark || !committed) return {true, 0};
  return {false, std::min(*committed, *mark)};
}

std::int64_t mark_to_write(std::int64_t low_water, std::optional<std::int64_t> mark,
                           bool may_fall) {
  if (may_fall || !mark) return low_water;
  return std::max(low_water, *mark);
}

}  // namespace fcap::updater
