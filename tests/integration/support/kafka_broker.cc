#include "support/kafka_broker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <unistd.h>

#include "support/or_throw.h"

namespace fcap::testing {
namespace {

using kafka::Ptr;

constexpr int kTimeoutMs = 60'000;
// A client of librdkafka 2.0.2 that has lost an answer waits for it as long as it may, so a
// question that is asked again is asked by another client.
constexpr int kQuestionMs = 5'000;
// Brokers are killed and started again meanwhile, which takes long on a busy machine.
constexpr int kDeliveryMs = 300'000;

void set(rd_kafka_conf_t* conf, const char* name, const std::string& value) {
  char text[512] = {};
  if (rd_kafka_conf_set(conf, name, value.c_str(), text, sizeof text) != RD_KAFKA_CONF_OK) {
    throw std::runtime_error(text);
  }
}

kafka::KafkaClient make_client(rd_kafka_type_t type, rd_kafka_conf_t* conf) {
  return or_throw(kafka::KafkaClient::create(type, kafka::Ptr<rd_kafka_conf_t>(conf)));
}

kafka::KafkaClient make_consumer(const std::string& brokers, const std::string& group) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", brokers);
  set(conf, "group.id", group);
  set(conf, "enable.auto.commit", "false");
  set(conf, "reconnect.backoff.max.ms", "500");
  kafka::KafkaClient client = make_client(RD_KAFKA_CONSUMER, conf);
  rd_kafka_poll_set_consumer(client.get());
  return client;
}

void check(rd_kafka_error_t* error, const char* doing) {
  const kafka::Ptr<rd_kafka_error_t> owned(error);
  if (owned) throw std::runtime_error(std::string(doing) + ": " + rd_kafka_error_string(error));
}

void check(rd_kafka_resp_err_t code, const char* doing) {
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw std::runtime_error(std::string(doing) + ": " + rd_kafka_err2str(code));
  }
}

// Asks until the broker answers without an error. A broker refuses for a moment what it is about
// to be able to do: it has just started, a coordinator moves, a topic is a second old.
template <typename Ask>
void ask(const char* doing, Ask ask_once) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeoutMs);
  rd_kafka_resp_err_t code = ask_once();
  while (code != RD_KAFKA_RESP_ERR_NO_ERROR && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    code = ask_once();
  }
  check(code, doing);
}

std::int64_t end_of(rd_kafka_t* handle, const std::string& topic, int partition) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  ask("watermarks", [&] {
    return rd_kafka_query_watermark_offsets(handle, topic.c_str(), partition, &low, &high,
                                            kTimeoutMs);
  });
  return high;
}

// Sends an administrative request until it is answered without an error.
template <typename Send>
void ask_admin(const char* doing, rd_kafka_t* client, Send send) {
  ask(doing, [&] {
    const kafka::Ptr<rd_kafka_queue_t> answers(rd_kafka_queue_new(client));
    send(answers.get());
    const kafka::Ptr<rd_kafka_event_t> answer(rd_kafka_queue_poll(answers.get(), kTimeoutMs));
    return answer ? rd_kafka_event_error(answer.get()) : RD_KAFKA_RESP_ERR__TIMED_OUT;
  });
}

TopicMessage copy_of(const rd_kafka_message_t& message) {
  TopicMessage copy;
  copy.partition = message.partition;
  copy.offset = message.offset;
  copy.has_key = message.key != nullptr;
  copy.has_value = message.payload != nullptr;
  if (message.key_len > 0) copy.key.assign(static_cast<char*>(message.key), message.key_len);
  if (message.len > 0) copy.value.assign(static_cast<char*>(message.payload), message.len);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    for (std::size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         ++i) {
      copy.headers[name] = std::string(static_cast<const char*>(value), size);
    }
  }
  return copy;
}

}  // namespace

std::string unique_topic() {
  const auto* const suite = ::testing::UnitTest::GetInstance()->current_test_suite();
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = suite->name();
  if (test != nullptr) name += std::string(".") + test->name();
  static std::atomic<int> named{0};
  name += "." + std::to_string(::getpid()) + "." + std::to_string(++named);
  std::replace(name.begin(), name.end(), '/', '.');  // behind an instantiation's name
  return name;
}

KafkaBroker& KafkaBroker::shared() {
  static const std::unique_ptr<KafkaBroker> broker = [] {
    // NOLINTBEGIN(concurrency-mt-unsafe): nobody changes the environment
    // tests/integration/CMakeLists.txt sets the first; ctest says "id:2,slots:1" in the second.
    const char* const name = std::getenv("FCAP_TEST_KAFKA");
    const char* const given = std::getenv("CTEST_RESOURCE_GROUP_0_KAFKA_BROKERS");
    // NOLINTEND(concurrency-mt-unsafe)
    if (name == nullptr || given == nullptr) return std::make_unique<KafkaBroker>();
    const std::string_view words = given;
    const std::string_view id = words.substr(0, words.find(',')).substr(words.find(':') + 1);
    return std::unique_ptr<KafkaBroker>(
        new KafkaBroker(std::filesystem::temp_directory_path() / (name + std::string(id))));
  }();
  return *broker;
}

KafkaBroker::KafkaBroker(const std::filesystem::path& running) : service_("kafka", running) {
  service_.attach();
}

KafkaBroker::KafkaBroker(const std::vector<std::string>& accounts,
                         const std::vector<std::string>& settings)
    : service_("kafka", directory_.path()) {
  start(accounts, settings);
}

void KafkaBroker::start(const std::vector<std::string>& accounts,
                        const std::vector<std::string>& settings) {
  std::vector<std::string> arguments;
  for (const std::string& account : accounts) {
    if (arguments.empty()) arguments = {"--", "fcap.accounts="};
    arguments.back() += (arguments.back().ends_with('=') ? "" : ",") + account;
  }
  if (arguments.empty() && !settings.empty()) arguments = {"--"};
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  service_.start(arguments);
}

void KafkaBroker::allow(const std::string& account, const Right& right) const {
  const auto client = make_consumer(brokers(), "allows");
  const std::string principal = "User:" + account;
  char text[512] = {};
  rd_kafka_AclBinding_t* binding = rd_kafka_AclBinding_new(
      right.on, right.name.c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL, principal.c_str(), "*",
      right.operation, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, text, sizeof text);
  if (binding == nullptr) throw std::runtime_error(text);
  ask_admin("granting a right", client.get(), [&](rd_kafka_queue_t* answers) {
    rd_kafka_CreateAcls(client.get(), &binding, 1, nullptr, answers);
  });
  rd_kafka_AclBinding_destroy(binding);
}

void KafkaBroker::forbid_all(const std::string& account) const {
  const auto client = make_consumer(brokers(), "forbids");
  const std::string principal = "User:" + account;
  char text[512] = {};
  rd_kafka_AclBindingFilter_t* filter = rd_kafka_AclBindingFilter_new(
      RD_KAFKA_RESOURCE_ANY, nullptr, RD_KAFKA_RESOURCE_PATTERN_ANY, principal.c_str(), nullptr,
      RD_KAFKA_ACL_OPERATION_ANY, RD_KAFKA_ACL_PERMISSION_TYPE_ANY, text, sizeof text);
  if (filter == nullptr) throw std::runtime_error(text);
  ask_admin("taking rights", client.get(), [&](rd_kafka_queue_t* answers) {
    rd_kafka_DeleteAcls(client.get(), &filter, 1, nullptr, answers);
  });
  rd_kafka_AclBinding_destroy(filter);
}

void KafkaBroker::create_topic(const std::string& name, int partitions,
                               const std::vector<std::string>& settings) {
  std::vector<std::string> arguments = {name, std::to_string(partitions)};
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  service_.act("create-topic", arguments);
}

void KafkaBroker::add_partitions(const std::string& name, std::size_t partitions) const {
  const auto client = make_consumer(brokers(), "adds");
  char text[512] = {};
  rd_kafka_NewPartitions_t* added =
      rd_kafka_NewPartitions_new(name.c_str(), partitions, text, sizeof text);
  if (added == nullptr) throw std::runtime_error(text);
  ask_admin("adding partitions", client.get(), [&](rd_kafka_queue_t* answers) {
    rd_kafka_CreatePartitions(client.get(), &added, 1, nullptr, answers);
  });
  rd_kafka_NewPartitions_destroy(added);
}

std::vector<TopicMessage> KafkaBroker::read_all(const std::string& topic, int partitions) const {
  const auto consumer = make_consumer(brokers(), "read-all");
  const kafka::Ptr<rd_kafka_topic_partition_list_t> list(
      rd_kafka_topic_partition_list_new(partitions));
  std::size_t left = 0;
  for (int partition = 0; partition < partitions; ++partition) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = 0;
    left += static_cast<std::size_t>(end_of(consumer.get(), topic, partition));
  }
  check(rd_kafka_assign(consumer.get(), list.get()), "assign");
  std::vector<TopicMessage> messages;
  while (messages.size() < left) {
    ask("reading", [&] {
      const kafka::Ptr<rd_kafka_message_t> message(
          rd_kafka_consumer_poll(consumer.get(), kTimeoutMs));
      if (!message) return RD_KAFKA_RESP_ERR__TIMED_OUT;
      if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) messages.push_back(copy_of(*message));
      return message->err;
    });
  }
  rd_kafka_consumer_close(consumer.get());
  return messages;
}

std::vector<TopicMessage> KafkaBroker::read_letters(const std::string& topic) const {
  std::vector<TopicMessage> letters = read_all(topic, 1);
  std::set<std::pair<std::string, std::string>> places;
  std::erase_if(letters, [&places](const TopicMessage& letter) {
    const auto& headers = letter.headers;
    return !places.emplace(headers.at("fcap.partition"), headers.at("fcap.offset")).second;
  });
  return letters;
}

std::int64_t KafkaBroker::committed_sum(const std::string& group, const std::string& topic,
                                        int partitions) const {
  const std::lock_guard lock(committed_mutex_);
  const kafka::Ptr<rd_kafka_topic_partition_list_t> list(
      rd_kafka_topic_partition_list_new(partitions));
  for (int partition = 0; partition < partitions; ++partition) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition);
  }
  ask("committed", [&] {
    if (!committed_client_ || committed_group_ != group) {
      committed_client_ = make_consumer(brokers(), group);
      committed_group_ = group;
    }
    const auto code = rd_kafka_committed(committed_client_.get(), list.get(), kQuestionMs);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) committed_client_ = {};
    const auto* const refused =
        std::find_if(list->elems, list->elems + list->cnt,
                     [](const auto& at) { return at.err != RD_KAFKA_RESP_ERR_NO_ERROR; });
    const bool one = code == RD_KAFKA_RESP_ERR_NO_ERROR && refused != list->elems + list->cnt;
    return one ? refused->err : code;
  });
  std::int64_t sum = 0;
  for (int i = 0; i < list->cnt; ++i) sum += std::max<std::int64_t>(list->elems[i].offset, 0);
  return sum;
}

void KafkaBroker::delete_records(const std::string& topic, int partitions) const {
  const auto client = make_consumer(brokers(), "deletes");
  const kafka::Ptr<rd_kafka_topic_partition_list_t> list(
      rd_kafka_topic_partition_list_new(partitions));
  for (int partition = 0; partition < partitions; ++partition) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset =
        end_of(client.get(), topic, partition);
  }
  rd_kafka_DeleteRecords_t* request = rd_kafka_DeleteRecords_new(list.get());
  ask_admin("deleting records", client.get(), [&](rd_kafka_queue_t* answers) {
    rd_kafka_DeleteRecords(client.get(), &request, 1, nullptr, answers);
  });
  rd_kafka_DeleteRecords_destroy(request);
}

void KafkaBroker::delete_topic(const std::string& name) const {
  const auto client = make_consumer(brokers(), "deletes");
  rd_kafka_DeleteTopic_t* request = rd_kafka_DeleteTopic_new(name.c_str());
  ask_admin("deleting a topic", client.get(), [&](rd_kafka_queue_t* answers) {
    rd_kafka_DeleteTopics(client.get(), &request, 1, nullptr, answers);
  });
  rd_kafka_DeleteTopic_destroy(request);
}

void KafkaBroker::commit(const std::string& group, const std::string& topic, int partition,
                         std::int64_t offset) const {
  const auto consumer = make_consumer(brokers(), group);
  const kafka::Ptr<rd_kafka_topic_partition_list_t> list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = offset;
  ask("commit", [&] { return rd_kafka_commit(consumer.get(), list.get(), 0); });
}

std::int64_t KafkaBroker::end(const std::string& topic, int partition) const {
  return end_of(make_consumer(brokers(), "ends").get(), topic, partition);
}

std::int64_t KafkaBroker::end_sum(const std::string& topic, int partitions) const {
  const auto consumer = make_consumer(brokers(), "ends");
  std::int64_t sum = 0;
  for (int partition = 0; partition < partitions; ++partition) {
    sum += end_of(consumer.get(), topic, partition);
  }
  return sum;
}

KafkaProducer::KafkaProducer(const std::string& brokers, const std::string& transactional_id) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", brokers);
  set(conf, "enable.idempotence", "true");
  set(conf, "linger.ms", "5");
  set(conf, "message.timeout.ms", std::to_string(kDeliveryMs));
  set(conf, "reconnect.backoff.max.ms", "500");
  rd_kafka_conf_set_opaque(conf, this);
  rd_kafka_conf_set_dr_msg_cb(conf, [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) ++static_cast<KafkaProducer*>(self)->failed_;
  });
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  if (!transactional_id.empty()) {
    set(conf, "transactional.id", transactional_id);
    set(conf, "transaction.timeout.ms", std::to_string(kDeliveryMs));
  }
  client_ = make_client(RD_KAFKA_PRODUCER, conf);
  if (!transactional_id.empty()) {
    ask("beginning transactions", [this] {
      const kafka::Ptr<rd_kafka_error_t> error(
          rd_kafka_init_transactions(client_.get(), kTimeoutMs));
      return error ? rd_kafka_error_code(error.get()) : RD_KAFKA_RESP_ERR_NO_ERROR;
    });
  }
}

void KafkaProducer::begin_transaction() {
  check(rd_kafka_begin_transaction(client_.get()), "beginning a transaction");
}

void KafkaProducer::commit_transaction() {
  check(rd_kafka_commit_transaction(client_.get(), kTimeoutMs), "committing a transaction");
}

void KafkaProducer::abort_transaction() {
  // So that the broker knows of it; librdkafka's own abort may be refused otherwise.
  flush();
  const std::uint64_t failed = failed_;
  check(rd_kafka_abort_transaction(client_.get(), kTimeoutMs), "aborting a transaction");
  failed_ = failed;
}

KafkaProducer::~KafkaProducer() {
  rd_kafka_purge(client_.get(), kafka::kPurgeAll);
}

void KafkaProducer::send(const std::string& topic, std::string_view key, std::string_view value,
                         std::int32_t partition) {
  send_at(std::nullopt, topic, key, value, partition);
}

void KafkaProducer::send_at(std::optional<Instant> time, const std::string& topic,
                            std::string_view key, std::string_view value, std::int32_t partition) {
  constexpr int kTries = kDeliveryMs / 100;
  constexpr int kWaitMs = 100;
  const std::int64_t time_ms = time ? to_ms(*time) : 0;
  for (int i = 0; i < kTries; ++i) {
    const auto code = rd_kafka_producev(
        client_.get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
        RD_KAFKA_V_KEY(key.data(), key.size()), RD_KAFKA_V_TIMESTAMP(time_ms), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_poll(client_.get(), 0);
      return;
    }
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) check(code, "producing");
    rd_kafka_poll(client_.get(), kWaitMs);
  }
  throw std::runtime_error("producing: the queue stays full");
}

void KafkaProducer::flush() {
  check(rd_kafka_flush(client_.get(), kDeliveryMs), "flushing");
  if (failed_ > 0) throw std::runtime_error(std::to_string(failed_) + " messages not delivered");
}

}  // namespace fcap::testing
