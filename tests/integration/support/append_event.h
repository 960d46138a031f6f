#pragma once

#include <string>

#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"
#include "support/expected_ledgers.h"
#include "support/store_calls.h"

namespace fcap::testing {

/// Appends an entry of its own to the user's record, as the updater does.
inline void append_event(Store& store, const MadeEvent& event, Instant expire_at) {
  const ledger::Entry entry{.time = event.time,
                            .campaign = ledger::id_hash(event.campaign_id),
                            .creative = 0,
                            .type = EventType::kImpression,
                            .fingerprint = ledger::fingerprint(event.event_id)};
  std::string bytes;
  ledger::append_entries({&entry, 1}, bytes);
  std::string key;
  ledger::user_key("fcap", event.user_id, key);
  const auto done = StoreCalls(store).append(key, bytes, expire_at);
  EXPECT_EQ(done.code, StoreCode::kOk) << done.text;
}

}  // namespace fcap::testing
