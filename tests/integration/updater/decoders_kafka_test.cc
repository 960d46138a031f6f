// Encodings that ask more of the write path than JSON does: several events in one message, headers,
// and messages that can be decoded only in a while.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace decoders_kafka_test {

using testing::MadeEvent;
using testing::wait_until;

// A JSON event per line. What has the key "late" cannot be decoded before it is told so.
class LineDecoder final : public events::EventDecoder {
 public:
  events::Decoded decode(const events::Message& message, std::vector<events::Event>& events,
                         events::Rejected& rejected) noexcept override {
    if (message.key == "late" && !ready.load()) {
      ++asked;
      return events::Decoded::kNotYet;
    }
    topic_seen = std::string(message.topic);
    has_time = message.timestamp.has_value();
    events.clear();
    // The views of an event live until the JSON decoder's next call.
    decoders_.clear();
    std::string_view left = message.value;
    while (!left.empty()) {
      const auto end = left.find('\n');
      decoders_.push_back(events::make_json_event_decoder());
      events::Event event;
      if (const auto why = decoders_.back()->decode_one(left.substr(0, end), event)) {
        rejected = *why;
        return events::Decoded::kRejected;
      }
      events.push_back(event);
      left = end == std::string_view::npos ? std::string_view{} : left.substr(end + 1);
    }
    return events::Decoded::kEvents;
  }

  std::atomic<bool> ready{false};
  std::atomic<int> asked{0};
  std::string topic_seen;
  bool has_time = false;

 private:
  std::vector<std::unique_ptr<events::EventDecoder>> decoders_;
};

class UpdaterDecoders : public testing::UpdaterPipeline {
 protected:
  UpdaterDecoders() { decoder_ = &lines_; }
  void produce_lines(int messages, const std::string& key, std::int32_t partition) {
    for (int i = 0; i < messages; ++i) {
      std::string value;
      for (int line = 0; line < 3; ++line) {
        const MadeEvent event = maker_.next();
        value += event.json() + "\n";
        expected_.add(event);
      }
      producer_->send(topic_, key, value, partition);
    }
  }
  LineDecoder lines_;
};

TEST_F(UpdaterDecoders, SeveralEventsOfAMessageAreAllCounted) {
  for (std::int32_t partition = 0; partition < kPartitions; ++partition) {
    produce_lines(300, "k", partition);
  }
  auto updater = start_updater();
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return committed() == 900; }, kPatience));
  updater->stop();
  EXPECT_EQ(lines_.topic_seen, topic_);
  EXPECT_TRUE(lines_.has_time);
}

TEST_F(UpdaterDecoders, AMessageThatCannotBeDecodedYetHoldsUpItsPartitionOnly) {
  produce_lines(50, "k", 0);
  produce_lines(1, "late", 0);
  produce_lines(50, "k", 0);
  produce_lines(200, "k", 1);
  producer_->flush();
  auto updater = start_updater();
  EXPECT_TRUE(wait_until([&] { return committed() == 250; }, kPatience)) << committed();
  EXPECT_TRUE(wait_until([&] { return lines_.asked >= 3; }, kPatience));
  EXPECT_EQ(committed(), 250) << "nothing behind it is done";
  produce_lines(100, "k", 1);
  producer_->flush();
  EXPECT_TRUE(wait_until([&] { return committed() == 350; }, kPatience)) << committed();
  lines_.ready = true;
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return committed() == 401; }, kPatience)) << committed();
}

}  // namespace decoders_kafka_test
}  // namespace fcap
