// No client keeps its owner from ending, whatever librdkafka's threads wait for: here, for the
// system's resolver.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "kafka/consumer.h"
#include "kafka/groupless_consumer.h"
#include "kafka/kafka_client.h"
#include "kafka/producer.h"
#include "kafka/publisher.h"
#include "kafka/range_reader.h"
#include "kafka/topic_questions.h"
#include "kafka/write_probe.h"
#include "tests/support/mock_cluster.h"

namespace {

std::atomic<bool> slow{false};  // whether a look-up takes until it is no longer set
std::atomic<int> looking_up{0};

}  // namespace

// In front of the system's.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* name,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** found) {
  if (slow) {
    ++looking_up;
    while (slow) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    --looking_up;
    return EAI_AGAIN;
  }
  static const auto the_systems =
      reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return the_systems(name, service, hints, found);
}

namespace fcap::kafka {
namespace client_end_test {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kHangs{30};

// Resolves nothing until its end, and then waits until all clients have ended.
class SlowResolver {
 public:
  SlowResolver() { slow = true; }
  ~SlowResolver() {
    slow = false;
    while (KafkaClient::is_left_behind()) std::this_thread::sleep_for(1ms);
  }
  SlowResolver(const SlowResolver&) = delete;
  SlowResolver& operator=(const SlowResolver&) = delete;

  static void wait_until_asked() {
    while (looking_up == 0) std::this_thread::sleep_for(1ms);
  }
};

// Whether it returns while librdkafka waits.
bool ends(std::function<void()> work) {
  std::packaged_task<void()> task(std::move(work));
  const std::future<void> done = task.get_future();
  std::thread(std::move(task)).detach();
  return done.wait_for(kHangs) == std::future_status::ready;
}

struct Nobody final : AssignmentListener {
  void on_assigning(std::vector<PartitionOffset>& /*partitions*/) override {}
  void on_revoking(std::span<const PartitionOffset> /*partitions*/, bool /*lost*/) override {}
};

struct Report final : DeliveryReport {
  void delivered(Delivery what, std::string_view /*why*/) noexcept override {
    last = what;
    ++count;
  }
  std::atomic<Delivery> last{Delivery::kDelivered};
  std::atomic<int> count{0};
};

ConnectionOptions nowhere() {
  return {.brokers = "broker.invalid:9092"};
}

struct Kind {
  std::string name;
  std::function<void()> live_and_end;
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

std::unique_ptr<Consumer> make_consumer() {
  ConsumerOptions options;
  options.connection = nowhere();
  return Consumer::create(options, {}, {}).value();
}

std::vector<Kind> all_kinds() {
  return {
      {"Consumer",
       [] {
         const auto consumer = make_consumer();
         SlowResolver::wait_until_asked();
       }},
      {"ConsumerInAGroup",
       [] {
         Nobody listener;
         const auto consumer = make_consumer();
         EXPECT_TRUE(consumer->subscribe(listener).ok());
         SlowResolver::wait_until_asked();
       }},
      {"ClosedConsumer",
       [] {
         const auto consumer = make_consumer();
         SlowResolver::wait_until_asked();
         consumer->close(1s);
         EXPECT_TRUE(KafkaClient::is_left_behind());
       }},
      {"GrouplessConsumer",
       [] {
         const auto consumer = GrouplessConsumer::create({nowhere(), "events", "group"}).value();
         SlowResolver::wait_until_asked();
       }},
      {"Producer",
       [] {
         Report report;
         auto producer = Producer::create(nowhere(), "events", {}).value();
         producer->send({.key = {}, .value = "letter"}, report);
         SlowResolver::wait_until_asked();
         producer.reset();
         EXPECT_EQ(report.count, 1);
         EXPECT_EQ(report.last, Delivery::kFailed);
       }},
      {"Publisher",
       [] {
         const auto publisher = Publisher::open(nowhere()).value();
         EXPECT_FALSE(publisher->publish("events", "k", "v", 100ms).ok());
         SlowResolver::wait_until_asked();
       }},
      {"RangeReader",
       [] {
         const auto reader = RangeReader::open(nowhere(), "events", 100ms).value();
         EXPECT_FALSE(reader->whole_topic().ok());
         SlowResolver::wait_until_asked();
       }},
      {"TopicQuestions",
       [] {
         const auto questions = TopicQuestions::open(nowhere(), "group", 100ms).value();
         EXPECT_FALSE(questions->topic("events").ok());
         SlowResolver::wait_until_asked();
       }},
      {"TriedWriting", [] { EXPECT_FALSE(try_writing(nowhere(), "events", 2s).ok()); }},
  };
}

class ClientOfASlowResolver : public ::testing::TestWithParam<Kind> {
 protected:
  const SlowResolver resolver_;
};

TEST_P(ClientOfASlowResolver, EndsAllTheSame) {
  EXPECT_TRUE(ends(GetParam().live_and_end));
}

INSTANTIATE_TEST_SUITE_P(Each, ClientOfASlowResolver, ::testing::ValuesIn(all_kinds()),
                         [](const auto& kind) { return kind.param.name; });

// What has been handed to the broker that leads the partition is librdkafka's to report, and that
// thread of it does nothing now.
TEST(ProducerWhoseBrokerIsGone, ReportsEachMessageOnce) {
  Cluster cluster(0);
  Report first;
  Report second;
  auto producer = Producer::create({.brokers = cluster.brokers()}, "events", {}).value();
  producer->send({.key = {}, .value = "first"}, first);
  while (first.count == 0) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(first.last, Delivery::kDelivered);
  const SlowResolver resolver;
  cluster.stop_broker(1);
  SlowResolver::wait_until_asked();
  producer->send({.key = {}, .value = "second"}, second);
  EXPECT_TRUE(ends([&] { producer.reset(); }));
  EXPECT_EQ(second.count, 1);
  EXPECT_EQ(second.last, Delivery::kFailed);
}

}  // namespace client_end_test
}  // namespace fcap::kafka
