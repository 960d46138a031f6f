#include "support/cluster_load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "support/process.h"

namespace fcap::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFirstFailuresMax = 5;
constexpr std::uint32_t kEntriesMax = 100;
constexpr Instant kEventTime = instant_from_ms(1'700'000'000'000);

Instant in_an_hour() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) + 1h;
}

// Waits for a list of appends.
class WaitingList final : public StoreListCompletion {
 public:
  explicit WaitingList(std::size_t count)
      : outcomes(count), left_(static_cast<std::ptrdiff_t>(count)) {}
  void complete(std::size_t index, const StoreOutcome& outcome) noexcept override {
    outcomes[index] = {outcome.code, {}, outcome.length_bytes, std::string(outcome.text)};
    left_.count_down();
  }
  void wait() const { left_.wait(); }

  std::vector<OwnedOutcome> outcomes;

 private:
  std::latch left_;
};

}  // namespace

ClusterLoad::ClusterLoad(Store& store, const std::vector<std::string>& users, std::size_t threads)
    : store_(store), users_(threads), finished_(threads) {
  static std::atomic<int> loads = 0;
  const int load = ++loads;
  for (std::size_t i = 0; i < users.size(); ++i) {
    users_[i % threads].push_back(
        {.id = users[i], .load = load, .generation = 0, .written = {}, .unsure = {}});
  }
  for (std::size_t thread = 0; thread < threads; ++thread) {
    threads_.emplace_back([this, thread](const std::stop_token& stop) { run(thread, stop); });
  }
}

std::string ClusterLoad::key_of(const User& user) {
  return "fcap:{" + user.id + "}" + std::to_string(user.load) + "." +
         std::to_string(user.generation);
}

std::uint64_t ClusterLoad::campaign_of(const User& user) {
  return ledger::id_hash(key_of(user));
}

void ClusterLoad::run(std::size_t thread, const std::stop_token& stop) {
  std::vector<User>& users = users_[thread];
  while (!stop.stop_requested()) {
    append_all(users);
    for (User& user : users) {
      if (stop.stop_requested()) return;
      read(user);
      if (user.next % 32 == 3) replace(user);
      if (user.next % 32 == 7) append(user);
      if (user.next < kEntriesMax) continue;
      User next = {.id = user.id,
                   .load = user.load,
                   .generation = user.generation + 1,
                   .written = {},
                   .unsure = {}};
      finished_[thread].push_back(std::exchange(user, std::move(next)));
    }
    std::this_thread::sleep_for(5ms);
  }
}

std::string ClusterLoad::next_entry(User& user) {
  const ledger::Entry entry{.time = kEventTime,
                            .campaign = campaign_of(user),
                            .creative = 0,
                            .type = EventType::kImpression,
                            .fingerprint = user.next++};
  std::string bytes;
  ledger::append_entries({&entry, 1}, bytes);
  return bytes;
}

void ClusterLoad::take(User& user, bool is_written) {
  (is_written ? user.written : user.unsure).insert(user.next - 1);
}

void ClusterLoad::note(const User& user, const char* what, const OwnedOutcome& outcome,
                       bool is_right) {
  const std::lock_guard lock(mutex_);
  ++seen_.operations;
  if (is_right || ++seen_.failures > kFirstFailuresMax) return;
  seen_.first_failures += "\n" + std::string(what) + " of " + user.id + ": code " +
                          std::to_string(static_cast<int>(outcome.code)) + " " + outcome.text;
}

void ClusterLoad::append(User& user) {
  const std::string bytes = next_entry(user);
  const OwnedOutcome outcome = StoreCalls(store_).append(key_of(user), bytes, in_an_hour());
  take(user, outcome.code == StoreCode::kOk);
  note(user, "append", outcome, outcome.code == StoreCode::kOk);
}

void ClusterLoad::append_all(std::span<User> users) {
  std::vector<std::string> keys(users.size());
  std::vector<std::string> bytes(users.size());
  std::vector<Store::Append> list;
  for (std::size_t i = 0; i < users.size(); ++i) {
    keys[i] = key_of(users[i]);
    bytes[i] = next_entry(users[i]);
    list.push_back({.key = keys[i], .bytes = bytes[i], .expire_at = in_an_hour()});
  }
  WaitingList waiting(list.size());
  store_.append_all(list, std::chrono::steady_clock::now() + 30s, waiting);
  waiting.wait();
  for (std::size_t i = 0; i < users.size(); ++i) {
    const OwnedOutcome& outcome = waiting.outcomes[i];
    take(users[i], outcome.code == StoreCode::kOk);
    note(users[i], "append_all", outcome, outcome.code == StoreCode::kOk);
  }
}

void ClusterLoad::replace(User& user) {
  const OwnedOutcome before = StoreCalls(store_).get(key_of(user));
  if (before.code != StoreCode::kOk) return note(user, "get", before, false);
  const OwnedOutcome outcome = StoreCalls(store_).compare_and_set(
      key_of(user), before.record, before.record + next_entry(user), in_an_hour());
  take(user, outcome.code == StoreCode::kOk);
  note(user, "compare_and_set", outcome, outcome.code == StoreCode::kOk);
}

void ClusterLoad::read(User& user) {
  const OwnedOutcome outcome = StoreCalls(store_).get(key_of(user));
  const bool is_right = outcome.code == StoreCode::kOk ||
                        (outcome.code == StoreCode::kNotFound && user.written.empty());
  note(user, "get", outcome, is_right);
  if (!is_right) return;
  const std::lock_guard lock(mutex_);
  compare(user, outcome, seen_);
}

void ClusterLoad::compare(const User& user, const OwnedOutcome& outcome, Seen& seen) {
  ledger::Ledger ledger;
  if (ledger.decode(outcome.record) != ledger::DecodeCode::kOk) ++seen.foreign;
  std::size_t known = 0;
  for (const std::uint32_t one : ledger.fingerprints()) {
    if (user.written.contains(one) || user.unsure.contains(one)) ++known;
  }
  seen.foreign += ledger.size() - known;
  for (const ledger::Run& run : ledger.runs()) {
    if (run.campaign != campaign_of(user)) seen.foreign += run.end - run.begin;
  }
  for (const std::uint32_t one : user.written) {
    if (!ledger.contains(campaign_of(user), EventType::kImpression, one)) ++seen.lost;
  }
}

ClusterLoad::Seen ClusterLoad::seen() const {
  const std::lock_guard lock(mutex_);
  return seen_;
}

bool ClusterLoad::wait_for_more(std::size_t count) const {
  const auto succeeded = [this] {
    const Seen now = seen();
    return now.operations - now.failures;
  };
  const std::size_t before = succeeded();
  return wait_until([&] { return succeeded() >= before + count; });
}

ClusterLoad::Seen ClusterLoad::verify() {
  Seen last;
  for (const auto* all : {&users_, &finished_}) {
    for (const std::vector<User>& users : *all) {
      for (const User& user : users) verify(user, last);
    }
  }
  return last;
}

void ClusterLoad::verify(const User& user, Seen& last) {
  ++last.operations;
  OwnedOutcome outcome;
  const bool answered = wait_until([&] {
    outcome = StoreCalls(store_).get(key_of(user));
    return outcome.code == StoreCode::kOk || outcome.code == StoreCode::kNotFound;
  });
  if (!answered) ++last.failures;
  compare(user, outcome, last);
}

}  // namespace fcap::testing
