#include "support/expected_ledgers.h"

#include <algorithm>
#include <chrono>
#include <sstream>

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
  Instant& newest = newest_[event.user_id];
  newest = std::max(newest, event.time);
}

ExpectedLedgers::Count ExpectedLedgers::count(
    const std::function<bool(const std::string&)>& wanted) const {
  Count count;
  for (const auto& [user, events] : users_) {
    if (!wanted(user)) continue;
    ++count.users;
    count.events += static_cast<long long>(events.size());
  }
  return count;
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

std::string ExpectedLedgers::wrong_expiries(const RedisServer& redis,
                                            std::chrono::milliseconds retention) const {
  // The script shares no code with what is tested.
  std::istringstream lines(redis.command({"EVAL", R"(
      local lines = {}
      for _, key in ipairs(redis.call('KEYS', '*')) do
        lines[#lines + 1] = redis.call('PEXPIRETIME', key) .. ' ' .. key
      end
      return table.concat(lines, '\n'))",
                                          "0"}));
  std::map<std::string, std::int64_t> not_before;
  for (const auto& [user, newest] : newest_) {
    not_before["fcap:{" + user + "}"] = to_ms(newest + retention);
  }
  constexpr int kLinesMax = 5;
  int lines_written = 0;
  std::string wrong;
  std::int64_t expires_ms = 0;
  for (std::string key; lines >> expires_ms && std::getline(lines >> std::ws, key);) {
    // -1: never, which is wrong for marks and whatever else there may be.
    const std::int64_t least = not_before.contains(key) ? not_before[key] : 1;
    if (expires_ms < least && ++lines_written <= kLinesMax) {
      wrong += fmt::format("{} expires at {}, not after {}\n", key, expires_ms, least);
    }
  }
  return wrong;
}

}  // namespace fcap::testing
