#pragma once

#include <fcap/checker_options.h>
#include <fcap/store.h>

#include "checker/counters.h"
#include "checker/gate.h"
#include "checker/judgement.h"
#include "checker/latency.h"
#include "checker/verdict_room.h"
#include "ledger/ids.h"
#include "redis/direct_reads.h"

namespace fcap::checker {

/// What the blocking and the asynchronous forms share. Everything outlives both; the store is not
/// touched once the Gate is closed and all calls that had begun are submitted.
struct SharedParts {
  const CheckerOptions& options;
  Gate& gate;
  Judgement& judgement;
  Counters& counters;
  Latency& check_latency;
  Latency& store_latency;
  VerdictRoom& room;
  Store& store;
  redis::DirectReads* direct;  ///< of the store; null: it cannot
};

/// The longest prefix and user id, and what stands between them.
inline constexpr std::size_t kKeyBytesMax = 64 + ledger::kIdBytesMax + 3;

}  // namespace fcap::checker
