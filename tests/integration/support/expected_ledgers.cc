#include "support/expected_ledgers.h"

#include <chrono>

#include <fmt/format.h>

#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "ledger/user_key.h"
#include "support/store_calls.h"

namespace fcap::testing {

std::string MadeEvent::json() const {
  return fmt::format(R"({{"user_id":"{}","campaign_id":"{}","timestamp":{},"imp_id":"{}"}})",
                     user_id, campaign_id, to_ms(time), event_id);
}

MadeEvent EventMaker::next() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  std::uniform_int_distribution<std::size_t> user(0, users_ - 1);
  std::uniform_int_distribution<int> campaign(0, 19);
  std::uniform_int_distribution<int> age_ms(0, 3'600'000);
  MadeEvent event;
  event.user_id = fmt::format("user-{}", user(random_));
  event.campaign_id = fmt::format("c{}", campaign(random_));
  event.event_id = fmt::format("{:016x}-{}", random_(), made_++);
  event.time = now - std::chrono::milliseconds{age_ms(random_)};
  return event;
}

void ExpectedLedgers::add(const MadeEvent& event) {
  ++events_;
  users_[event.user_id].emplace(ledger::id_hash(event.campaign_id),
                                ledger::fingerprint(event.event_id), to_ms(event.time));
}

ExpectedLedgers::Difference ExpectedLedgers::compare(Store& store,
                                                     const std::string& prefix) const {
  Difference difference;
  StoreCalls calls(store);
  ledger::Ledger found;
  std::string key;
  for (const auto& [user, expected] : users_) {
    ledger::user_key(prefix, user, key);
    const OwnedOutcome outcome = calls.get(key);
    const bool readable =
        outcome.code == StoreCode::kNotFound ||
        (outcome.code == StoreCode::kOk && found.decode(outcome.record) == ledger::DecodeCode::kOk);
    if (!readable) {
      ++difference.unreadable;
      continue;
    }
    if (outcome.code == StoreCode::kNotFound) found.clear();
    std::size_t matched = 0;
    for (const ledger::Run& run : found.runs()) {
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        matched += expected.count({run.campaign, found.fingerprints()[i], to_ms(found.times()[i])});
      }
    }
    difference.missing += expected.size() - matched;
    difference.surplus += found.size() - matched;
  }
  return difference;
}

}  // namespace fcap::testing
