#include "kafka/range_reader.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "kafka/leader_moves.h"
#include "kafka/message.h"
#include "kafka/partition_lists.h"

namespace fcap::kafka {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kSilenceMax{30};

struct TopicDelete {
  void operator()(rd_kafka_topic_t* topic) const noexcept { rd_kafka_topic_destroy(topic); }
};

// Where a partition's reading has got to; read on until `next` reaches `end`.
using Ends = std::map<std::int32_t, std::int64_t>;

void note_progress(Ends& unfinished, std::int32_t partition, std::int64_t next) {
  const auto end = unfinished.find(partition);
  if (end != unfinished.end() && next >= end->second) unfinished.erase(end);
}

}  // namespace

Result<std::unique_ptr<RangeReader>> RangeReader::open(const ConnectionOptions& connection,
                                                       std::string topic,
                                                       std::chrono::milliseconds answer_within) {
  // End-of-partition events tell that offsets below the end do not exist (compacted, or markers).
  auto conf = make_conf(connection, {{"group.id", "fcap-range-reader"}},
                        {{"enable.auto.commit", "false"},
                         {"enable.auto.offset.store", "false"},
                         {"enable.partition.eof", "true"},
                         {"auto.offset.reset", "earliest"}});
  if (!conf.ok()) return conf.status();
  auto last_error = std::make_shared<LastError>();
  last_error->listen(*conf.value());
  auto client = KafkaClient::create(RD_KAFKA_CONSUMER, std::move(conf).value(), last_error);
  if (!client.ok()) return client.status();
  return std::unique_ptr<RangeReader>(new RangeReader(
      std::move(topic), answer_within, std::move(last_error), std::move(client).value()));
}

Status RangeReader::failure(const std::string& what, rd_kafka_resp_err_t code) {
  rd_kafka_poll(client_.get(), 0);  // what went wrong, if nobody has heard of it yet
  return last_error_->failure(what, code);
}

int RangeReader::answer_ms() const noexcept {
  return static_cast<int>(
      std::clamp<std::int64_t>(answer_within_.count(), 1, std::numeric_limits<int>::max()));
}

Result<int> RangeReader::partition_count() {
  const std::unique_ptr<rd_kafka_topic_t, TopicDelete> topic(
      rd_kafka_topic_new(client_.get(), topic_.c_str(), nullptr));
  const struct rd_kafka_metadata* metadata = nullptr;
  const auto code = rd_kafka_metadata(client_.get(), 0, topic.get(), &metadata, answer_ms());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return failure("topic " + topic_, code);
  const auto topic_code = metadata->topics[0].err;
  const int count = metadata->topics[0].partition_cnt;
  rd_kafka_metadata_destroy(metadata);
  if (topic_code != RD_KAFKA_RESP_ERR_NO_ERROR) return failure("topic " + topic_, topic_code);
  return count;
}

Result<std::vector<OffsetSpan>> RangeReader::whole_topic() {
  const auto count = partition_count();
  if (!count.ok()) return count.status();
  std::vector<OffsetSpan> spans;
  for (std::int32_t partition = 0; partition < count.value(); ++partition) {
    OffsetSpan span{partition, 0, 0};
    const auto code = ask_leaders(answer_within_, [&](std::chrono::milliseconds left) {
      return rd_kafka_query_watermark_offsets(client_.get(), topic_.c_str(), partition, &span.from,
                                              &span.to, to_int_ms(left));
    });
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return failure(fmt::format("{} [{}]", topic_, partition), code);
    }
    spans.push_back(span);
  }
  return spans;
}

Status RangeReader::read(const std::vector<OffsetSpan>& spans, const Visit& visit) {
  // From here on the poll below gives messages and reports errors.
  rd_kafka_poll_set_consumer(client_.get());
  Ends unfinished;
  const Ptr<rd_kafka_topic_partition_list_t> list(
      rd_kafka_topic_partition_list_new(static_cast<int>(spans.size())));
  for (const OffsetSpan& span : spans) {
    if (span.from >= span.to) continue;
    unfinished[span.partition] = span.to;
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), span.partition)->offset =
        span.from;
  }
  const Ends ends = unfinished;
  const auto assigned = rd_kafka_assign(client_.get(), list.get());
  if (assigned != RD_KAFKA_RESP_ERR_NO_ERROR)
    return last_error_->failure("topic " + topic_, assigned);
  auto heard = steady_clock::now();
  while (!unfinished.empty()) {
    const Ptr<rd_kafka_message_t> message(rd_kafka_consumer_poll(client_.get(), 100));
    if (steady_clock::now() - heard > kSilenceMax) {
      return last_error_->failure("topic " + topic_, RD_KAFKA_RESP_ERR__TIMED_OUT);
    }
    if (!message) continue;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      heard = steady_clock::now();
      if (message->offset < ends.at(message->partition)) {
        visit({.partition = message->partition,
               .offset = message->offset,
               .timestamp = instant_from_ms(rd_kafka_message_timestamp(message.get(), nullptr)),
               .value = payload_of(*message),
               .reason = header_of(*message, kReasonHeader).value_or("")});
      }
      note_progress(unfinished, message->partition, message->offset + 1);
    } else if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      heard = steady_clock::now();
      note_progress(unfinished, message->partition, message->offset);
    }
  }
  return {};
}

}  // namespace fcap::kafka
