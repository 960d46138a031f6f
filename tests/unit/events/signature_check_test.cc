#include "events/signature_check.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fcap::events {
namespace signature_check_test {

constexpr Instant kServed = instant_from_ms(1'700'000'000'000);

std::shared_ptr<const SigningKeys> keys_of(const std::string& id, char secret, Instant from = {},
                                           std::optional<Instant> until = {}) {
  auto keys = SigningKeys::create(
      {{.id = id, .secret = std::string(32, secret), .from = from, .until = until}});
  EXPECT_TRUE(keys.ok()) << keys.status().text();
  return std::move(keys).value();
}

std::string signed_by(const SigningKeys& keys, std::string_view user = "u",
                      std::string_view campaign = "c") {
  return keys.sign({.user_id = user, .campaign_id = campaign}, kServed).value();
}

Event event_with(std::string_view id, EventType type = EventType::kImpression) {
  Event event;
  event.user_id = "u";
  event.campaign_id = "c";
  event.event_id = id;
  event.type = type;
  event.time = kServed;
  return event;
}

class SignatureChecks : public ::testing::Test {
 protected:
  std::string judge(const Event& event,
                    SignatureRequired required = SignatureRequired::kImpressions) {
    const SignatureCheck check([this] { return keys_; }, {.required = required, .limits = {}});
    const auto refused = check.refusal_of(event);
    return refused ? std::string(to_string(refused->reason)) : "accepted";
  }
  std::shared_ptr<const SigningKeys> keys_ = keys_of("k", 's');
};

TEST_F(SignatureChecks, EachWrongSignatureHasAReasonOfItsOwn) {
  const std::string id = signed_by(*keys_);
  EXPECT_EQ(judge(event_with(id)), "accepted");
  EXPECT_EQ(judge(event_with(signed_by(*keys_, "v"))), "signature_foreign");
  EXPECT_EQ(judge(event_with(signed_by(*keys_, "u", "d"))), "signature_foreign");
  EXPECT_EQ(judge(event_with(signed_by(*keys_of("k", 'x')))), "signature_forged");
  EXPECT_EQ(judge(event_with(signed_by(*keys_of("j", 's')))), "signature_unknown_key");
  EXPECT_EQ(judge(event_with(id.substr(0, 36))), "signature_malformed");
  Event late = event_with(id);
  late.time += std::chrono::hours{25};
  EXPECT_EQ(judge(late), "signature_expired");
  keys_ = keys_of("k", 's', kServed + std::chrono::hours{1});
  EXPECT_EQ(judge(event_with(id)), "signature_key_not_in_force");
}

TEST_F(SignatureChecks, WhatMustBeSignedIsASetting) {
  const Event impression = event_with("plain");
  const Event click = event_with("plain", EventType::kClick);
  EXPECT_EQ(judge(impression, SignatureRequired::kNothing), "accepted");
  EXPECT_EQ(judge(impression, SignatureRequired::kImpressions), "signature_missing");
  EXPECT_EQ(judge(click, SignatureRequired::kImpressions), "accepted");
  EXPECT_EQ(judge(click, SignatureRequired::kAll), "signature_missing");
  // What is signed is verified in any case.
  const std::string forged = signed_by(*keys_of("k", 'x'));
  EXPECT_EQ(judge(event_with(forged), SignatureRequired::kNothing), "signature_forged");
  EXPECT_EQ(judge(event_with(signed_by(*keys_), EventType::kClick), SignatureRequired::kAll),
            "accepted");
}

TEST_F(SignatureChecks, ErasuresNeedNone) {
  Event erasure;
  erasure.kind = Event::Kind::kErasure;
  erasure.user_id = "u";
  erasure.time = kServed;
  EXPECT_EQ(judge(erasure, SignatureRequired::kAll), "accepted");
}

}  // namespace signature_check_test
}  // namespace fcap::events
