#include "updater/pipeline/intake.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace fcap::updater {
namespace intake_test {

using std::chrono::milliseconds;
using Fate = Intake::Fate;

constexpr std::int64_t kNowMs = 1'700'000'000'000;
constexpr std::int64_t kDayMs = 86'400'000;

class IntakeTest : public ::testing::Test {
 protected:
  Fate judge(std::string_view user, std::int64_t at_ms) {
    message_ = fmt::format(R"({{"user_id":"{}","campaign_id":"c","timestamp":{},"imp_id":"i"}})",
                           user, at_ms);
    return intake_.classify(message_, clocks_);
  }

  std::unique_ptr<events::EventDecoder> decoder_ = events::make_json_event_decoder();
  IntakeOptions options_;
  Intake intake_{*decoder_, options_};
  IntakeClocks clocks_{instant_from_ms(kNowMs), instant_from_ms(kNowMs)};
  std::string message_;
};

TEST_F(IntakeTest, WritesWhatIsWithinRetentionAndTheAllowedFuture) {
  EXPECT_EQ(judge("u", kNowMs), Fate::kWrite);
  EXPECT_EQ(judge("u", kNowMs + 300'000), Fate::kWrite);
  EXPECT_EQ(judge("u", kNowMs - 32 * kDayMs + 1), Fate::kWrite);
}

TEST_F(IntakeTest, RefusesWhatIsFurtherAheadThanAllowed) {
  EXPECT_EQ(judge("u", kNowMs + 300'001), Fate::kReject);
  EXPECT_EQ(intake_.rejected().reason, events::Rejection::kInFuture);
}

TEST_F(IntakeTest, SkipsWhatIsExactlyOneRetentionOld) {
  EXPECT_EQ(judge("u", kNowMs - 32 * kDayMs), Fate::kTooOld);
}

TEST_F(IntakeTest, AClockThatRunsAheadMakesNothingTooOld) {
  clocks_.latest = instant_from_ms(kNowMs + 365 * kDayMs);
  EXPECT_EQ(judge("u", kNowMs), Fate::kWrite);
}

TEST_F(IntakeTest, SkipsNobodysEventsWhateverTheirTime) {
  EXPECT_EQ(judge("", kNowMs), Fate::kNullUser);
  EXPECT_EQ(judge("00000000-0000-0000-0000-000000000000", kNowMs), Fate::kNullUser);
  EXPECT_EQ(judge("", kNowMs + 10 * kDayMs), Fate::kNullUser);
  EXPECT_EQ(judge("0", kNowMs), Fate::kWrite);
}

TEST_F(IntakeTest, RefusesALongMessageUnread) {
  const std::string message(options_.message_bytes_max + 1, ' ');
  EXPECT_EQ(intake_.classify(message, clocks_), Fate::kReject);
  EXPECT_EQ(intake_.rejected().reason, events::Rejection::kTooLarge);
}

TEST_F(IntakeTest, HandsTheDecodersReasonOn) {
  EXPECT_EQ(intake_.classify("{}", clocks_), Fate::kReject);
  EXPECT_EQ(intake_.rejected().reason, events::Rejection::kMissingMember);
  EXPECT_EQ(intake_.classify("", clocks_), Fate::kReject);
}

TEST_F(IntakeTest, VerifiesSignaturesOfWhatIsToBeWrittenOnly) {
  auto keys = SigningKeys::create({{.id = "k", .secret = std::string(32, 's'), .from = {}}});
  if (!keys.ok()) GTEST_SKIP() << keys.status().text();  // built without OpenSSL
  ASSERT_TRUE(keys.ok()) << keys.status().text();
  options_.signatures = std::make_shared<events::SignatureCheck>([&] { return keys.value(); },
                                                                 events::SignatureCheckOptions{});
  intake_ = Intake(*decoder_, options_);
  EXPECT_EQ(judge("u", kNowMs), Fate::kReject);
  EXPECT_EQ(intake_.rejected().reason, events::Rejection::kSignatureMissing);
  EXPECT_EQ(judge("", kNowMs), Fate::kNullUser);
  EXPECT_EQ(judge("u", kNowMs - 32 * kDayMs), Fate::kTooOld);
  const auto id = keys.value()->sign({.user_id = "u", .campaign_id = "c"}, instant_from_ms(kNowMs));
  ASSERT_TRUE(id.ok());
  message_ = fmt::format(R"({{"user_id":"u","campaign_id":"c","timestamp":{},"imp_id":"{}"}})",
                         kNowMs + 1, id.value());
  EXPECT_EQ(intake_.classify(message_, clocks_), Fate::kWrite);
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
  EXPECT_EQ(intake.classify(message, clocks), Fate::kWrite);
  EXPECT_EQ(decoder.seen_key, "k");
  EXPECT_EQ(intake.event().user_id, "u");
  EXPECT_EQ(intake.classify_next(clocks), Fate::kNullUser);
  EXPECT_EQ(intake.classify_next(clocks), Fate::kReject);
  EXPECT_EQ(intake.classify_next(clocks), Fate::kTooOld);
  ASSERT_TRUE(intake.more());
  EXPECT_EQ(intake.classify_next(clocks), Fate::kWrite);
  EXPECT_EQ(intake.event().user_id, "x");
  EXPECT_FALSE(intake.more());

  decoder.says.clear();
  EXPECT_EQ(intake.classify(message, clocks), Fate::kNullUser);
  EXPECT_FALSE(intake.more());
  decoder.says = {event("u", kNowMs)};
  for (const auto& [answer, fate] : {std::pair(events::Decoded::kNotYet, Fate::kNotYet),
                                     std::pair(events::Decoded::kRejected, Fate::kReject)}) {
    decoder.answer = answer;
    EXPECT_EQ(intake.classify(message, clocks), fate);
    EXPECT_FALSE(intake.more());
  }
}

}  // namespace intake_test
}  // namespace fcap::updater
