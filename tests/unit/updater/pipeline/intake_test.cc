#include "updater/pipeline/intake.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace fcap::updater {
namespace intake_test {

using ::testing::ElementsAre;

constexpr std::int64_t kNowMs = 1'700'000'000'000;
constexpr std::int64_t kDayMs = 86'400'000;

// What becomes of a message, one word per event.
std::vector<std::string> fates(Intake& intake, const events::Message& message,
                               const IntakeClocks& clocks) {
  if (!intake.decode(message)) return {"not yet"};
  std::vector<std::string> found;
  LeftOut left_out;
  intake.sort_events(
      clocks, left_out,
      [&](const events::Event& event) { found.push_back(std::string(event.user_id)); },
      [&](const events::Rejected& why) { found.emplace_back(to_string(why.reason)); });
  for (std::uint64_t i = 0; i < left_out.too_old; ++i) found.emplace_back("too old");
  for (std::uint64_t i = 0; i < left_out.null_user; ++i) found.emplace_back("nobody's");
  return found;
}

class IntakeTest : public ::testing::Test {
 protected:
  // The fate of a message with one event.
  std::string fate(const events::Message& message) {
    const auto found = fates(intake_, message, clocks_);
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? "" : found.front();
  }
  std::string judge(std::string_view user, std::int64_t at_ms) {
    message_ = fmt::format(R"({{"user_id":"{}","campaign_id":"c","timestamp":{},"imp_id":"i"}})",
                           user, at_ms);
    return fate(message_);
  }

  std::unique_ptr<events::EventDecoder> decoder_ = events::make_json_event_decoder();
  IntakeOptions options_;
  Intake intake_{*decoder_, options_};
  IntakeClocks clocks_{instant_from_ms(kNowMs), instant_from_ms(kNowMs)};
  std::string message_;
};

TEST_F(IntakeTest, WritesWhatIsWithinRetentionAndTheAllowedFuture) {
  EXPECT_EQ(judge("u", kNowMs), "u");
  EXPECT_EQ(judge("u", kNowMs + 300'000), "u");
  EXPECT_EQ(judge("u", kNowMs - 32 * kDayMs + 1), "u");
}

TEST_F(IntakeTest, RefusesWhatIsFurtherAheadThanAllowed) {
  EXPECT_EQ(judge("u", kNowMs + 300'001), "in_future");
}

TEST_F(IntakeTest, SkipsWhatIsExactlyOneRetentionOld) {
  EXPECT_EQ(judge("u", kNowMs - 32 * kDayMs), "too old");
}

TEST_F(IntakeTest, AClockThatRunsAheadMakesNothingTooOld) {
  clocks_.latest = instant_from_ms(kNowMs + 365 * kDayMs);
  EXPECT_EQ(judge("u", kNowMs), "u");
}

TEST_F(IntakeTest, SkipsNobodysEventsWhateverTheirTime) {
  EXPECT_EQ(judge("", kNowMs), "nobody's");
  EXPECT_EQ(judge("00000000-0000-0000-0000-000000000000", kNowMs), "nobody's");
  EXPECT_EQ(judge("", kNowMs + 10 * kDayMs), "nobody's");
  EXPECT_EQ(judge("0", kNowMs), "0");
}

TEST_F(IntakeTest, RefusesALongMessageUnread) {
  const std::string message(options_.message_bytes_max + 1, ' ');
  EXPECT_EQ(fate(message), "too_large");
}

TEST_F(IntakeTest, HandsTheDecodersReasonOn) {
  EXPECT_EQ(fate("{}"), "missing_member");
  EXPECT_EQ(fate(""), "not_json");
}

TEST_F(IntakeTest, VerifiesSignaturesOfWhatIsToBeWrittenOnly) {
  auto keys = SigningKeys::create({{.id = "k", .secret = std::string(32, 's'), .from = {}}});
  if (!keys.ok()) GTEST_SKIP() << keys.status().text();  // built without OpenSSL
  ASSERT_TRUE(keys.ok()) << keys.status().text();
  options_.signatures = std::make_shared<events::SignatureCheck>([&] { return keys.value(); },
                                                                 events::SignatureCheckOptions{});
  intake_ = Intake(*decoder_, options_);
  EXPECT_EQ(judge("u", kNowMs), "signature_missing");
  EXPECT_EQ(judge("", kNowMs), "nobody's");
  EXPECT_EQ(judge("u", kNowMs - 32 * kDayMs), "too old");
  const auto id = keys.value()->sign({.user_id = "u", .campaign_id = "c"}, instant_from_ms(kNowMs));
  ASSERT_TRUE(id.ok());
  message_ = fmt::format(R"({{"user_id":"u","campaign_id":"c","timestamp":{},"imp_id":"{}"}})",
                         kNowMs + 1, id.value());
  EXPECT_EQ(fate(message_), "u");
}

// Says what it was told to, whatever the message.
class ToldDecoder final : public events::EventDecoder {
 public:
  events::Decoded decode(const events::Message& message, std::vector<events::Event>& events,
                         events::Rejected& rejected) noexcept override {
    seen_key = message.key.value_or("none");
    events = says;
    rejected = {events::Rejection::kWrongType, "m"};
    return answer;
  }
  events::Decoded answer = events::Decoded::kEvents;
  std::vector<events::Event> says;
  std::string seen_key;
};

TEST(IntakeOfAnyDecoder, EachEventOfAMessageHasItsFate) {
  ToldDecoder decoder;
  Intake intake(decoder, {});
  const IntakeClocks clocks{instant_from_ms(kNowMs), instant_from_ms(kNowMs)};
  const auto event = [](std::string_view user, std::int64_t at_ms) {
    events::Event made;
    made.user_id = user;
    made.time = instant_from_ms(at_ms);
    return made;
  };
  decoder.says = {event("u", kNowMs), event("", kNowMs), event("v", kNowMs + kDayMs), event("w", 0),
                  event("x", kNowMs)};
  events::Message message("bytes");
  message.key = "k";
  EXPECT_THAT(fates(intake, message, clocks),
              ElementsAre("u", "in_future", "x", "too old", "nobody's"));
  EXPECT_EQ(decoder.seen_key, "k");

  decoder.says.clear();
  EXPECT_THAT(fates(intake, message, clocks), ElementsAre("nobody's"));
  decoder.says = {event("u", kNowMs)};
  decoder.answer = events::Decoded::kNotYet;
  EXPECT_THAT(fates(intake, message, clocks), ElementsAre("not yet"));
  decoder.answer = events::Decoded::kRejected;
  EXPECT_THAT(fates(intake, message, clocks), ElementsAre("wrong_type"));
}

}  // namespace intake_test
}  // namespace fcap::updater
