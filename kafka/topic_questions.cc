#include "kafka/topic_questions.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "kafka/last_error.h"
#include "kafka/message.h"
#include "kafka/partition_lists.h"

namespace fcap::kafka {
namespace {

using Clock = std::chrono::steady_clock;

struct AdminOptionsDelete {
  void operator()(rd_kafka_AdminOptions_t* p) const noexcept { rd_kafka_AdminOptions_destroy(p); }
};
struct ResourceDelete {
  void operator()(rd_kafka_ConfigResource_t* p) const noexcept {
    rd_kafka_ConfigResource_destroy(p);
  }
};

PartitionList list_of_topic(const std::string& topic, const Offsets& at) {
  PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(at.size())));
  for (const auto& [partition, offset] : at) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition)->offset = offset;
  }
  return list;
}

Offsets all_at(const std::set<std::int32_t>& partitions, std::int64_t offset) {
  Offsets at;
  for (const std::int32_t partition : partitions) at[partition] = offset;
  return at;
}

}  // namespace

std::string TopicState::error() const {
  return rd_kafka_err2str(code);
}

Result<std::unique_ptr<TopicQuestions>> TopicQuestions::open(
    const ConnectionOptions& connection, const std::string& group_id,
    std::chrono::milliseconds answer_within) {
  auto conf = make_conf(connection,
                        {{"auto.offset.reset", "earliest"},
                         {"fetch.message.max.bytes", "16384"},
                         {"queued.min.messages", "1"},
                         {"socket.timeout.ms", "10000"},
                         {"reconnect.backoff.max.ms", "2000"}},
                        {{"group.id", group_id},
                         {"enable.auto.commit", "false"},
                         {"enable.auto.offset.store", "false"},
                         {"enable.partition.eof", "true"}});
  if (!conf.ok()) return conf.status();
  auto last_error = std::make_shared<LastError>();
  last_error->listen(*conf.value());
  auto client = KafkaClient::create(RD_KAFKA_CONSUMER, std::move(conf).value(), last_error);
  if (!client.ok()) return client.status();
  rd_kafka_poll_set_consumer(client.value().get());
  return std::unique_ptr<TopicQuestions>(
      new TopicQuestions(answer_within, std::move(last_error), std::move(client).value()));
}

int TopicQuestions::answer_ms() const noexcept {
  return static_cast<int>(
      std::clamp<std::int64_t>(answer_within_.count(), 1, std::numeric_limits<int>::max()));
}

std::string TopicQuestions::words() {
  // Serves the callbacks. Nothing is assigned, so there are no messages.
  const Ptr<rd_kafka_message_t> nothing(rd_kafka_consumer_poll(client_.get(), 0));
  return last_error_->text();
}

void TopicQuestions::heard() noexcept {
  answered_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
}

std::optional<Clock::time_point> TopicQuestions::answered() const noexcept {
  const auto at = answered_.load(std::memory_order_relaxed);
  return at == 0 ? std::nullopt : std::optional(Clock::time_point(Clock::duration(at)));
}

Fault TopicQuestions::fault() const noexcept {
  return last_error_->fault();
}

Status TopicQuestions::failure(const std::string& what, rd_kafka_resp_err_t code) {
  (void)words();
  return last_error_->failure(what, code);
}

Result<TopicState> TopicQuestions::topic(const std::string& name) {
  rd_kafka_t* const handle = client_.get();
  const Ptr<rd_kafka_topic_t> topic(rd_kafka_topic_new(handle, name.c_str(), nullptr));
  if (!topic) return failure("topic " + name, rd_kafka_last_error());
  const struct rd_kafka_metadata* metadata = nullptr;
  const auto code = rd_kafka_metadata(handle, 0, topic.get(), &metadata, answer_ms());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return failure("topic " + name, code);
  TopicState state;
  if (metadata->topic_cnt > 0) {
    const auto& about = metadata->topics[0];
    state.code = about.err;
    state.partitions = about.partition_cnt;
    for (int i = 0; i < about.partition_cnt; ++i) {
      if (about.partitions[i].leader < 0) state.without_leader.insert(about.partitions[i].id);
    }
  }
  rd_kafka_metadata_destroy(metadata);
  last_error_->clear();  // what it was about has passed
  heard();
  return state;
}

PartitionAnswers TopicQuestions::read(const rd_kafka_topic_partition_list_t& list,
                                      const std::string& what) {
  PartitionAnswers answers;
  for (int i = 0; i < list.cnt; ++i) {
    const auto& at = list.elems[i];
    if (at.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      answers.refused.emplace(
          at.partition, Status::error(StatusCode::kUnavailable,
                                      fmt::format("{}: {}", what, rd_kafka_err2str(at.err)), true));
    } else if (at.offset >= 0) {
      answers.offsets[at.partition] = at.offset;
    }
  }
  if (answers.refused.size() < static_cast<std::size_t>(list.cnt)) heard();
  return answers;
}

Result<PartitionAnswers> TopicQuestions::list_offsets(const std::string& topic, const Offsets& at,
                                                      const std::string& what) {
  if (at.empty()) return PartitionAnswers{};
  const auto list = list_of_topic(topic, at);
  const auto code = rd_kafka_offsets_for_times(client_.get(), list.get(), answer_ms());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return failure(what + topic, code);
  return read(*list, what + topic);
}

Result<PartitionAnswers> TopicQuestions::ends(const std::string& topic,
                                              const std::set<std::int32_t>& partitions) {
  return list_offsets(topic, all_at(partitions, kLogEnd), "the ends of topic ");
}

Result<PartitionAnswers> TopicQuestions::beginnings(const std::string& topic,
                                                    const std::set<std::int32_t>& partitions) {
  return list_offsets(topic, all_at(partitions, kLogBeginning), "the beginnings of topic ");
}

Result<PartitionAnswers> TopicQuestions::first_since(const std::string& topic,
                                                     const std::map<std::int32_t, Instant>& times) {
  Offsets at;
  // Kafka takes values below 0 for names of the log's two ends, not for times.
  for (const auto& [partition, time] : times) {
    at[partition] = std::max<std::int64_t>(to_ms(time), 0);
  }
  return list_offsets(topic, at, "looking offsets up by time in topic ");
}

Result<PartitionAnswers> TopicQuestions::committed(const std::string& topic,
                                                   const std::set<std::int32_t>& partitions) {
  const std::string what = "the group's committed offsets";
  if (partitions.empty()) return PartitionAnswers{};
  const auto list = list_of_topic(topic, all_at(partitions, RD_KAFKA_OFFSET_INVALID));
  const auto code = rd_kafka_committed(client_.get(), list.get(), answer_ms());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return failure(what, code);
  return read(*list, what);
}

std::set<std::int32_t> TopicQuestions::read_from(
    const std::string& topic, const Offsets& at,
    const std::function<bool(const ReadMessage&)>& take, const std::function<bool()>& enough) {
  std::set<std::int32_t> ended;
  if (at.empty()) return ended;
  rd_kafka_t* const handle = client_.get();
  const PartitionList list = list_of_topic(topic, at);
  if (rd_kafka_assign(handle, list.get()) != RD_KAFKA_RESP_ERR_NO_ERROR) return ended;
  const auto until = Clock::now() + answer_within_;
  constexpr int kPollMs = 50;
  while (ended.size() < at.size() && Clock::now() < until) {
    const Ptr<rd_kafka_message_t> message(rd_kafka_consumer_poll(handle, kPollMs));
    if (!message) {
      if (enough()) break;
      continue;
    }
    const bool wanted = at.contains(message->partition) && !ended.contains(message->partition);
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF && wanted)
      ended.insert(message->partition);
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR || !wanted) continue;
    ReadMessage read{.partition = message->partition, .offset = message->offset};
    const std::int64_t ms = timestamp_ms(*message);
    if (ms >= 0) read.time = instant_from_ms(ms);
    read.payload = payload_of(*message);
    if (take(read)) ended.insert(read.partition);
  }
  rd_kafka_assign(handle, nullptr);
  return ended;
}

std::map<std::int32_t, Instant> TopicQuestions::timestamps(const std::string& topic,
                                                           const Offsets& at,
                                                           const std::function<bool()>& enough) {
  std::map<std::int32_t, Instant> found;
  const auto take = [&found](const ReadMessage& read) {
    if (read.time) found.emplace(read.partition, *read.time);
    return read.time.has_value();
  };
  read_from(topic, at, take, enough);
  return found;
}

Status TopicQuestions::try_reading(const std::string& topic,
                                   const std::set<std::int32_t>& partitions) {
  constexpr std::chrono::seconds kRefusedWithin{2};
  constexpr int kPollMs = 50;
  rd_kafka_t* const handle = client_.get();
  const auto list = list_of_topic(topic, all_at(partitions, RD_KAFKA_OFFSET_END));
  const auto assigned = rd_kafka_assign(handle, list.get());
  if (assigned != RD_KAFKA_RESP_ERR_NO_ERROR) return failure("reading topic " + topic, assigned);
  Status status;
  const auto until = Clock::now() + kRefusedWithin;
  while (status.ok() && Clock::now() < until) {
    const Ptr<rd_kafka_message_t> message(rd_kafka_consumer_poll(handle, kPollMs));
    if (!message) continue;
    const bool may_read = message->err == RD_KAFKA_RESP_ERR_NO_ERROR ||
                          message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (may_read) break;
    status = failure("reading topic " + topic, message->err);
  }
  rd_kafka_assign(handle, nullptr);
  return status;
}

Status TopicQuestions::try_committing(const std::string& topic) {
  constexpr std::int32_t kNowhere = std::numeric_limits<std::int32_t>::max();
  rd_kafka_t* const handle = client_.get();
  const auto list = list_of_topic(topic, {{kNowhere, 0}});
  const Ptr<rd_kafka_queue_t> queue(rd_kafka_queue_new(handle));
  const auto asked = rd_kafka_commit_queue(handle, list.get(), queue.get(), nullptr, nullptr);
  if (asked != RD_KAFKA_RESP_ERR_NO_ERROR) return failure("the group", asked);
  const Ptr<rd_kafka_event_t> event(rd_kafka_queue_poll(queue.get(), answer_ms()));
  if (!event) return failure("the group", RD_KAFKA_RESP_ERR__TIMED_OUT);
  auto code = rd_kafka_event_error(event.get());
  const auto* const answered = rd_kafka_event_topic_partition_list(event.get());
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR && answered != nullptr && answered->cnt == 1) {
    code = answered->elems[0].err;
  }
  const bool only_the_partition = code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  return only_the_partition ? Status{} : failure("the group", code);
}

Result<std::map<std::string, std::string>> TopicQuestions::settings(const std::string& topic) {
  rd_kafka_t* const handle = client_.get();
  const Ptr<rd_kafka_queue_t> queue(rd_kafka_queue_new(handle));
  const std::unique_ptr<rd_kafka_AdminOptions_t, AdminOptionsDelete> options(
      rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS));
  rd_kafka_AdminOptions_set_request_timeout(options.get(), answer_ms(), nullptr, 0);
  const std::unique_ptr<rd_kafka_ConfigResource_t, ResourceDelete> resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  rd_kafka_DescribeConfigs(handle, resources, 1, options.get(), queue.get());
  // The request ends by its own timeout, and says so.
  const Ptr<rd_kafka_event_t> event(rd_kafka_queue_poll(queue.get(), answer_ms() + 1000));
  const std::string what = "the settings of topic " + topic;
  if (!event) return failure(what, RD_KAFKA_RESP_ERR__TIMED_OUT);
  if (const auto code = rd_kafka_event_error(event.get()); code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return failure(what, code);
  }
  std::size_t count = 0;
  const rd_kafka_ConfigResource_t** const answers = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event.get()), &count);
  std::map<std::string, std::string> settings;
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = rd_kafka_ConfigResource_error(answers[i]);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      const char* const said = rd_kafka_ConfigResource_error_string(answers[i]);
      return Status::error(StatusCode::kUnavailable,
                           fmt::format("{}: {}", what, said ? said : rd_kafka_err2str(code)), true);
    }
    std::size_t entries = 0;
    const rd_kafka_ConfigEntry_t** const all =
        rd_kafka_ConfigResource_configs(answers[i], &entries);
    for (std::size_t j = 0; j < entries; ++j) {
      const char* const value = rd_kafka_ConfigEntry_value(all[j]);
      settings[rd_kafka_ConfigEntry_name(all[j])] = value == nullptr ? "" : value;
    }
  }
  return settings;
}

}  // namespace fcap::kafka
