#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/signed_id.h>

#include "signing/signature.h"

namespace fcap {
namespace signed_id_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using Verdict = SignatureVerdict;

constexpr Instant kServed = instant_from_ms(1'700'000'000'000);
constexpr milliseconds kMs{1};

std::string counting_secret() {
  std::string secret;
  for (char c = 0; c < 32; ++c) secret.push_back(c);
  return secret;
}

SigningKey key(std::string id, Instant from = {}, std::optional<Instant> until = {}) {
  return {.id = std::move(id), .secret = counting_secret(), .from = from, .until = until};
}

std::shared_ptr<const SigningKeys> keys_of(std::vector<SigningKey> keys) {
  auto made = SigningKeys::create(std::move(keys));
  EXPECT_TRUE(made.ok()) << made.status().text();
  return std::move(made).value();
}

std::string mistake_of(std::vector<SigningKey> keys) {
  const auto made = SigningKeys::create(std::move(keys));
  return made.ok() ? "" : made.status().text();
}

constexpr SignedImpression kShown{.user_id = "u1", .campaign_id = "c1", .creative_id = "cr1"};

std::string signed_by(const SigningKeys& keys, const SignedImpression& impression = kShown,
                      Instant at = kServed) {
  auto id = keys.sign(impression, at);
  EXPECT_TRUE(id.ok()) << id.status().text();
  return std::move(id).value();
}

// docs/signed-ids.md, computed with Python's hmac.
struct Vector {
  const char* key_id;
  std::string secret;
  std::int64_t time_ms;
  signing::Nonce nonce;
  SignedImpression impression;
  const char* id;
};

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(SignedId, IsWhatTheDocumentedVectorsSay) {
  const std::string long_user = repeated("é", 128);
  const std::vector<Vector> vectors = {
      {"k1",
       counting_secret(),
       1'700'000'000'000,
       {},
       {"u1", "c1", ""},
       "fcap1.k1.AYvP5WgAAAAAAAAAAPB2WCQg7ufXNKw7Kg4KA-e49sS6"},
      {"k1",
       counting_secret(),
       1'700'000'000'123,
       {1, 2, 3, 4, 5, 6, 7},
       {"u1", "c1", "cr9"},
       "fcap1.k1.AYvP5Wh7AQIDBAUGB5COrsc3fAY0iVyai8_g-yZw7RNe"},
      {"2026-rotation_B",
       std::string(64, '\x5a'),
       1,
       {255, 255, 255, 255, 255, 255, 255},
       {long_user, "campaign/42", "-"},
       "fcap1.2026-rotation_B.AAAAAAAB_________99f4WGB0Lfa7nFEOzs5L_2abJVX"}};
  for (const Vector& vector : vectors) {
    auto mac = signing::MacKey::create(vector.secret);
    ASSERT_TRUE(mac.ok()) << mac.status().text();
    signing::IdForm form;
    form.key_id = vector.key_id;
    signing::write_time(instant_from_ms(vector.time_ms), form.body);
    std::copy(vector.nonce.begin(), vector.nonce.end(), form.body.begin() + signing::kTimeBytes);
    ASSERT_TRUE(signing::seal(*mac.value(), vector.impression, form));
    EXPECT_EQ(signing::write_id(form), vector.id);
    const auto keys = keys_of({{.id = vector.key_id, .secret = vector.secret, .from = {}}});
    EXPECT_EQ(keys->verify(vector.id, vector.impression, instant_from_ms(vector.time_ms)),
              Verdict::kValid);
  }
}

TEST(SignedId, HoldsFromItsServeTimeForItsLifetime) {
  const auto keys = keys_of({key("k")});
  const std::string id = signed_by(*keys);
  const auto at = [&](Instant time) { return keys->verify(id, kShown, time); };
  EXPECT_EQ(at(kServed), Verdict::kValid);
  EXPECT_EQ(at(kServed + hours{24}), Verdict::kValid);
  EXPECT_EQ(at(kServed + hours{24} + kMs), Verdict::kExpired);
  EXPECT_EQ(at(kServed - kMs), Verdict::kExpired);
  const SignatureLimits limits{.lifetime = hours{1}, .early_allowed = milliseconds{5}};
  EXPECT_EQ(keys->verify(id, kShown, kServed - 5 * kMs, limits), Verdict::kValid);
  EXPECT_EQ(keys->verify(id, kShown, kServed - 6 * kMs, limits), Verdict::kExpired);
  EXPECT_EQ(keys->verify(id, kShown, kServed + hours{1} + kMs, limits), Verdict::kExpired);
}

TEST(SignedId, IsForOneUserCampaignAndCreative) {
  const auto keys = keys_of({key("k")});
  const std::string id = signed_by(*keys);
  const auto of = [&](const SignedImpression& impression) {
    return keys->verify(id, impression, kServed);
  };
  EXPECT_EQ(of({"u2", "c1", "cr1"}), Verdict::kForeign);
  EXPECT_EQ(of({"u1", "c2", "cr1"}), Verdict::kForeign);
  EXPECT_EQ(of({"u1", "c1", "cr2"}), Verdict::kForeign);
  EXPECT_EQ(of({"u1", "c1", ""}), Verdict::kForeign);
  EXPECT_EQ(of({"u1c", "1", "cr1"}), Verdict::kForeign) << "no id runs over into the next";
  EXPECT_EQ(of({std::string_view{}, "c1", "cr1"}), Verdict::kForeign);
}

TEST(SignedId, AnyOtherCharacterMakesItInvalid) {
  const auto keys = keys_of({key("k"), key("j")});
  const std::string id = signed_by(*keys, kShown);
  for (std::size_t i = 0; i < id.size(); ++i) {
    for (const char c : {'A', 'b', '7', '_', '.', ' ', '\0', '\xff'}) {
      if (id[i] == c) continue;
      std::string changed = id;
      changed[i] = c;
      EXPECT_NE(keys->verify(changed, kShown, kServed), Verdict::kValid) << changed;
    }
  }
  // The MAC is the last 16 bytes; what the origin covers is still ours.
  std::string changed = id;
  changed.back() = changed.back() == 'A' ? 'B' : 'A';
  EXPECT_EQ(keys->verify(changed, kShown, kServed), Verdict::kForeign);
  changed = id;
  char& first = changed[changed.size() - 44 + 10];  // of the nonce
  first = first == 'A' ? 'B' : 'A';
  EXPECT_EQ(keys->verify(changed, kShown, kServed), Verdict::kForged);
}

TEST(SignedId, AnotherKeysSecretMakesForgeries) {
  const auto keys = keys_of({key("k")});
  auto other = key("k");
  other.secret.assign(32, 'x');
  EXPECT_EQ(keys->verify(signed_by(*keys_of({other})), kShown, kServed), Verdict::kForged);
  // A key of the same secret is another key all the same.
  std::string id = signed_by(*keys_of({key("j")}));
  id[6] = 'k';
  EXPECT_EQ(keys->verify(id, kShown, kServed), Verdict::kForged);
}

TEST(SignedId, OtherFormsAreNotSignedOrMalformed) {
  const auto keys = keys_of({key("k")});
  const auto verdict = [&](std::string_view id) { return keys->verify(id, kShown, kServed); };
  const std::string id = signed_by(*keys);
  EXPECT_EQ(id.size(), 6U + 1 + 1 + 44);
  for (const char* other : {"", "imp-1", "fcap1", "FCAP1.k.", "fcap2.k.x"}) {
    EXPECT_EQ(verdict(other), Verdict::kNotSigned) << other;
  }
  for (const std::string& other :
       {std::string("fcap1."), std::string("fcap1.k."), std::string("fcap1.."), id + "A",
        id.substr(0, id.size() - 1), "fcap1." + std::string(16, 'k') + id.substr(6),
        id.substr(0, 36)}) {
    EXPECT_EQ(verdict(other), Verdict::kMalformed) << other;
  }
  EXPECT_EQ(verdict("fcap1.j" + id.substr(7)), Verdict::kUnknownKey);
}

TEST(SigningKeys, TheNewestKeyInForceSignsAndEveryKeyVerifies) {
  const Instant end = kServed + hours{48};
  const Instant start = kServed + hours{24};
  const auto keys = keys_of({key("old", {}, end), key("new", start)});
  const auto signer = [&](Instant at) { return signed_by(*keys, kShown, at).substr(6, 3); };
  EXPECT_EQ(signer(kServed), "old");
  EXPECT_EQ(signer(start - kMs), "old");
  EXPECT_EQ(signer(start), "new");
  EXPECT_EQ(signer(end), "new");
  // Whoever has not read the new key yet signs with the old one until its end.
  const auto before = keys_of({key("old")});
  EXPECT_EQ(keys->verify(signed_by(*before, kShown, end - kMs), kShown, end), Verdict::kValid);
  EXPECT_EQ(keys->verify(signed_by(*before, kShown, end), kShown, end), Verdict::kKeyNotInForce);
  // Old events are read again long after their key has ended.
  const auto later = keys_of({key("old", {}, end), key("new", start), key("third", end)});
  EXPECT_EQ(later->verify(signed_by(*before), kShown, kServed), Verdict::kValid);
  EXPECT_EQ(keys_of({key("new")})->verify(signed_by(*before), kShown, kServed),
            Verdict::kUnknownKey);
}

TEST(SigningKeys, SignNothingWithoutAKeyInForceOrProperIds) {
  const auto keys = keys_of({key("k", kServed)});
  const auto code = [&](const SignedImpression& impression, Instant at) {
    return keys->sign(impression, at).status().code();
  };
  EXPECT_EQ(code(kShown, kServed), StatusCode::kOk);
  EXPECT_EQ(code(kShown, kServed - kMs), StatusCode::kNotFound);
  EXPECT_EQ(code({"", "c"}, kServed), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({"u", ""}, kServed), StatusCode::kInvalidArgument);
  const std::string longest(256, 'x');
  EXPECT_EQ(code({longest, longest, longest}, kServed), StatusCode::kOk);
  const std::string long_id = longest + "x";
  EXPECT_EQ(code({long_id, "c"}, kServed), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({"u", "c", long_id}, kServed), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kShown, instant_from_ms(-1)), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(kShown, instant_from_ms(std::int64_t{1} << 48)), StatusCode::kInvalidArgument);
}

TEST(SigningKeys, MakeDifferentIdsOnManyThreads) {
  const auto keys = keys_of({key("k")});
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::vector<std::vector<std::string>> made(kThreads);
  {
    std::vector<std::jthread> threads;
    for (auto& own : made) {
      threads.emplace_back([&own, &keys] {
        for (int i = 0; i < kEach; ++i) {
          own.push_back(signed_by(*keys));
          EXPECT_EQ(keys->verify(own.back(), kShown, kServed), Verdict::kValid);
        }
      });
    }
  }
  std::set<std::string> all;
  for (const auto& own : made) all.insert(own.begin(), own.end());
  EXPECT_EQ(all.size(), std::size_t{kThreads} * kEach);
}

TEST(SigningKeys, SayWhatIsWrongWithThem) {
  EXPECT_NE(mistake_of({}).find("at least one"), std::string::npos);
  EXPECT_NE(mistake_of({key("a b")}).find("\"a b\""), std::string::npos);
  EXPECT_NE(mistake_of({key("a"), key("a")}).find("more than once"), std::string::npos);
  EXPECT_NE(mistake_of({key("a", kServed, kServed)}).find("until"), std::string::npos);
  auto weak = key("a");
  weak.secret = "hunter2";
  EXPECT_NE(mistake_of({weak}).find("32 to 256"), std::string::npos);
  EXPECT_EQ(mistake_of({weak}).find("hunter2"), std::string::npos);
}

}  // namespace signed_id_test
}  // namespace fcap
