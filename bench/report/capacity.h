#pragma once

#include "report/document.h"

namespace fcap::bench {

/// Adds the table "capacity": what 500,000 requests/s and 100 million users take, by the document's
/// own numbers, for the ledger and for sorted sets. Nothing where these were not measured.
/// docs/performance.md has the formulae, and those that need other numbers.
void add_capacity(Json& document);

}  // namespace fcap::bench
