#pragma once

#include <vector>

#include <fcap/checker.h>

#include "checker/blocking.h"
#include "checker/judgement.h"
#include "checker/reserve_run.h"
#include "checker/sharing.h"

namespace fcap::checker {

/// Checker::pick_and_share().
PickResult pick_and_share(Blocking& blocking, Judgement& judgement, Sharing& sharing,
                          const ReserveAsk& ask, const CheckOptions& options) noexcept;

/// Notes what was picked for an ask's slots and tells other servers, in one write. `shown` has room
/// for one entry per slot.
void share_picks(Judgement& judgement, Sharing& sharing, const ReserveAsk& ask, Instant at,
                 const PickResult& picks, std::vector<ledger::Entry>& shown) noexcept;

}  // namespace fcap::checker
