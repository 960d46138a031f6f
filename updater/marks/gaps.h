#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// A set of offsets: its stretches, ascending and apart from each other.
using Gaps = std::vector<Gap>;

/// Every offset of `gaps`, and those of `more`.
[[nodiscard]] Gaps gaps_with(const Gaps& gaps, Gap more);
/// Every offset of `gaps` but those of `cut`.
[[nodiscard]] Gaps gaps_without(const Gaps& gaps, Gap cut);
/// The offsets of `gaps` below `end`.
[[nodiscard]] Gaps gaps_below(const Gaps& gaps, std::int64_t end);
/// Whether every offset of `gaps` is also in `all`.
[[nodiscard]] bool gaps_covered(const Gaps& gaps, const Gaps& all);
/// At most `most` stretches: the nearest neighbours are merged, with the offsets between them.
[[nodiscard]] Gaps gaps_merged(Gaps gaps, std::size_t most);
/// How many offsets there are.
[[nodiscard]] std::int64_t offsets_in(const Gaps& gaps) noexcept;

}  // namespace fcap::updater
