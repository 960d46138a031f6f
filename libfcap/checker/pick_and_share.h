#pragma once

#include <fcap/checker.h>

#include "checker/blocking.h"
#include "checker/judgement.h"
#include "checker/reserve_run.h"
#include "checker/sharing.h"

namespace fcap::checker {

/// Checker::pick_and_share().
PickResult pick_and_share(Blocking& blocking, Judgement& judgement, Sharing& sharing,
                          const ReserveAsk& ask, const CheckOptions& options) noexcept;

}  // namespace fcap::checker
