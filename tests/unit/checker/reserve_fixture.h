#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "ledger/encode_runs.h"
#include "reserving_store.h"

namespace fcap::checker_test {

// The memory store's records expire by the system clock, so tests judge by it.
inline Instant wall_now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// A Checker with at most one impression of c1 a day, on a store in memory.
class Reserve : public ::testing::Test {
 protected:
  Reserve() { make({}); }

  void make(CheckerOptions options) {
    checker_.reset();
    options.store = store_;
    options.clock = [this] { return now_; };
    auto made = Checker::create(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    limit("c1", 1);
  }
  void limit(const std::string& campaign, std::uint32_t count) {
    checker_->set_rules(rule_set({sliding_rule(campaign + "-daily", campaign, count)}));
  }
  HardResult reserve(std::string_view id, std::string_view campaign = "c1",
                     HardOptions options = {}, const CheckToken& after = {}) {
    return checker_->hard({HardCall::kReserve, {"u", {campaign}, id, {}, after}}, options);
  }
  HardResult record(std::string_view id) {
    return checker_->hard({HardCall::kRecord, {"u", {"c1"}, id}});
  }
  HardResult release(std::string_view id) {
    return checker_->hard({HardCall::kRelease, {"u", {"c1"}, id}});
  }

  ledger::Ledger ledger() {
    ledger::Ledger ledger;
    EXPECT_EQ(ledger.decode(store_->record("u")), ledger::DecodeCode::kOk);
    return ledger;
  }
  ledger::Entry entry(std::string_view id, Instant time) const {
    return {.time = time,
            .campaign = ledger::id_hash("c1"),
            .creative = 0,
            .type = EventType::kImpression,
            .fingerprint = ledger::fingerprint(id)};
  }
  // What the updater appends.
  void confirm(std::string_view id, Instant time) {
    const ledger::Entry event = entry(id, time);
    std::string bytes;
    ledger::append_entries({&event, 1}, bytes);
    store_->add("u", bytes);
  }
  // What another ad server has reserved.
  void add_reservation(std::string_view id, Instant time, std::chrono::milliseconds life,
                       bool released = false) {
    std::string bytes;
    ledger::append_reservation(
        {.event = entry(id, time), .expires = time + life, .released = released}, bytes);
    store_->add("u", bytes);
  }

  Instant now_ = wall_now();
  std::shared_ptr<ReservingStore> store_ = std::make_shared<ReservingStore>();
  std::unique_ptr<Checker> checker_;
};

}  // namespace fcap::checker_test
