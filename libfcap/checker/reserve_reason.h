#pragma once

#include <fcap/reserve.h>
#include <fcap/verdict.h>

namespace fcap::checker {

/// A check's reason as that of a hard call; kPassed as kDone.
[[nodiscard]] ReserveReason reserve_reason(Reason reason) noexcept;

}  // namespace fcap::checker
