// What becomes of each event in an audit: only what nothing explains is lost.
#include "cli/audit.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "command.h"
#include "ledger/encode.h"
#include "ledger/encode_runs.h"
#include "ledger/format.h"
#include "ledger/ids.h"

namespace fcap::cli {
namespace audit_test {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;

const Instant kNow = instant_from_ms(1'760'000'000'000);

std::shared_ptr<const RuleSet> no_rules() {
  auto made = RuleSet::build({}, {});
  EXPECT_TRUE(made.ok());
  return made.value();
}

ledger::Entry entry_of(const std::string& id, Instant time) {
  return {.time = time,
          .campaign = ledger::id_hash("c1"),
          .creative = 0,
          .type = EventType::kImpression,
          .fingerprint = ledger::fingerprint(id)};
}

class AuditTest : public ::testing::Test {
 protected:
  void produce(const std::string& user, const std::string& id, Instant time,
               Instant published_at = kNow - minutes{10}) {
    events::Event event;
    event.user_id = user;
    event.campaign_id = "c1";
    event.event_id = id;
    event.time = time;
    audit_.add(event, published_at, false);
  }
  void produce_erasure(const std::string& user, Instant until) {
    events::Event event;
    event.kind = events::Event::Kind::kErasure;
    event.user_id = user;
    event.time = until;
    audit_.add(event, kNow - minutes{10}, false);
  }
  void record(const std::string& user, const std::string& id, Instant time) {
    const ledger::Entry entry = entry_of(id, time);
    ledger::append_entries(std::span(&entry, 1), records_[user]);
  }
  AuditReport compare() {
    auto report = audit_.compare(
        [this](const std::string& user) -> Result<std::optional<std::string>> {
          const auto record = records_.find(user);
          if (record == records_.end()) return std::optional<std::string>();
          return std::optional<std::string>(record->second);
        },
        [] { return kNow; });
    EXPECT_TRUE(report.ok());
    return report.value();
  }

  static AuditOptions options() {
    AuditOptions options;
    options.null_user_ids = {"nobody"};
    return options;
  }

  std::map<std::string, std::string> records_;
  Audit audit_{options(), no_rules()};
};

TEST_F(AuditTest, AnEventThatNothingExplainsIsLost) {
  produce("u1", "a", kNow - hours{2});
  produce("u1", "b", kNow - hours{1});
  record("u1", "a", kNow - hours{2});
  const AuditReport report = compare();
  EXPECT_EQ(report.produced, 2U);
  EXPECT_EQ(report.counted, 1U);
  EXPECT_EQ(report.lost, 1U);
  EXPECT_FALSE(report.exact());
}

TEST_F(AuditTest, WhatIsOlderThanTheRetentionIsNotLost) {
  produce("u1", "a", kNow - days{90});
  produce("u1", "b", kNow - days{32});
  const AuditReport report = compare();
  EXPECT_EQ(report.produced, 2U);
  EXPECT_EQ(report.expired, 2U);
  EXPECT_EQ(report.lost, 0U);
  EXPECT_TRUE(report.exact());
}

TEST_F(AuditTest, AnExpiredEntryWhoseMessageIsGoneIsNotDouble) {
  produce("u1", "a", kNow - hours{1});
  record("u1", "a", kNow - hours{1});
  record("u1", "gone", kNow - days{33});
  EXPECT_TRUE(compare().exact());
}

TEST_F(AuditTest, AnEntryThatNoEventExplainsIsDouble) {
  produce("u1", "a", kNow - hours{1});
  record("u1", "a", kNow - hours{1});
  record("u1", "ghost", kNow - hours{3});
  const AuditReport report = compare();
  EXPECT_EQ(report.extra, 1U);
  EXPECT_FALSE(report.exact());
}

TEST_F(AuditTest, AnIdThatRepeatsMinutesLaterIsNoRedelivery) {
  const Instant shown = kNow - hours{1};
  for (const auto& [id, apart] : {std::pair{"a", minutes{0}}, std::pair{"b", minutes{5}},
                                  std::pair{"c", minutes{6}}, std::pair{"d", -minutes{6}}}) {
    produce("u", id, shown);
    produce("u", id, shown + apart);
    record("u", id, std::max(shown, shown + apart));
  }
  const AuditReport report = compare();
  EXPECT_EQ(report.produced, 4U);
  EXPECT_EQ(report.repeated, 4U);
  EXPECT_EQ(report.repeated_ids, 2U);
  EXPECT_TRUE(report.exact());
}

TEST_F(AuditTest, AReservationIsNoCountedEvent) {
  produce("u", "shown", kNow - hours{1});
  record("u", "shown", kNow - hours{1});
  for (const char* id : {"shown", "expected"}) {
    ledger::append_reservation({.event = entry_of(id, kNow - hours{1}), .expires = kNow + hours{1}},
                               records_["u"]);
  }
  produce("v", "expected", kNow - hours{1});
  ledger::append_reservation(
      {.event = entry_of("expected", kNow - hours{1}), .expires = kNow + hours{1}}, records_["v"]);
  const AuditReport report = compare();
  EXPECT_EQ(report.counted, 1U);
  EXPECT_EQ(report.extra, 0U);
  EXPECT_EQ(report.lost, 1U) << "it stands for the event only while that is on its way";
}

TEST_F(AuditTest, WhatTheUserHadErasedIsNotLost) {
  produce("u1", "a", kNow - hours{3});
  produce("u1", "b", kNow - hours{2});
  produce("u1", "c", kNow - hours{1});
  produce_erasure("u1", kNow - hours{2});
  ledger::append_erased_before(kNow - hours{2}, records_["u1"]);
  record("u1", "c", kNow - hours{1});
  const AuditReport report = compare();
  EXPECT_EQ(report.erasures, 1U);
  EXPECT_EQ(report.erased, 2U);
  EXPECT_EQ(report.counted, 1U);
  EXPECT_TRUE(report.exact());
}

TEST_F(AuditTest, AnErasureThatTheRecordDoesNotKnowIsADifference) {
  produce("u1", "a", kNow - hours{3});
  produce_erasure("u1", kNow - hours{2});
  record("u1", "a", kNow - hours{3});
  const AuditReport report = compare();
  EXPECT_EQ(report.erasures_lost, 1U);
  EXPECT_FALSE(report.exact());
}

TEST_F(AuditTest, WhatTheUpdaterRefusedForItsTimeIsNotLost) {
  produce("u1", "a", kNow + hours{1});
  // Delivered late, when its time had come: accepted.
  produce("u1", "b", kNow - hours{1}, kNow - hours{2});
  record("u1", "b", kNow - hours{1});
  // The same event twice, once with a time that was refused.
  produce("u1", "c", kNow + days{1});
  produce("u1", "c", kNow - hours{1});
  record("u1", "c", kNow - hours{1});
  const AuditReport report = compare();
  EXPECT_EQ(report.produced, 3U);
  EXPECT_EQ(report.in_future, 1U);
  EXPECT_TRUE(report.exact());
}

TEST_F(AuditTest, WhatWasTrimmedForSizeIsNotLost) {
  produce("u1", "a", kNow - hours{5});
  produce("u1", "b", kNow - hours{1});
  ledger::format::append_marker(ledger::format::Tag::kCompleteSince, kNow - hours{2},
                                records_["u1"]);
  record("u1", "b", kNow - hours{1});
  const AuditReport report = compare();
  EXPECT_EQ(report.trimmed, 1U);
  EXPECT_TRUE(report.exact());
}

TEST_F(AuditTest, WhatWasJustPublishedIsInFlight) {
  produce("u1", "a", kNow, kNow);
  const AuditReport report = compare();
  EXPECT_EQ(report.in_flight, 1U);
  EXPECT_TRUE(report.exact());
}

TEST_F(AuditTest, NobodysEventsAndWhatIsNotAnEventAreClassesOfTheirOwn) {
  produce("", "a", kNow - hours{1});
  produce("nobody", "b", kNow - hours{1});
  audit_.add_rejected();
  const AuditReport report = compare();
  EXPECT_EQ(report.messages, 3U);
  EXPECT_EQ(report.null_user, 2U);
  EXPECT_EQ(report.rejected, 1U);
  EXPECT_EQ(report.users, 0U);
  EXPECT_TRUE(report.nothing_audited());
}

TEST_F(AuditTest, EachMessageAndEachEventIsOfOneClass) {
  produce("u1", "there", kNow - hours{1});
  record("u1", "there", kNow - hours{1});
  record("u1", "ghost", kNow - hours{1});
  produce("u1", "there", kNow - hours{1});
  produce("u1", "lost", kNow - hours{1});
  produce("u2", "old", kNow - days{40});
  produce("u2", "early", kNow + hours{2});
  produce("nobody", "x", kNow);
  audit_.add_rejected();
  const AuditReport report = compare();
  EXPECT_EQ(report.messages, report.rejected + report.other_users + report.null_user +
                                 report.erasures + report.repeated + report.produced);
  EXPECT_EQ(report.produced, report.counted - report.extra + report.expired + report.in_future +
                                 report.erased + report.trimmed + report.in_flight + report.lost);
}

}  // namespace audit_test
}  // namespace fcap::cli
