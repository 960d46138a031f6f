#include "updater/pipeline/kafka_consumer.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

int to_int_ms(std::chrono::milliseconds wait) noexcept {
  return static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, 3'600'000));
}

Status kafka_status(rd_kafka_resp_err_t code, std::string_view doing) {
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return Status::error(StatusCode::kUnavailable,
                       fmt::format("{}: {}", doing, rd_kafka_err2str(code)), true);
}

std::vector<PartitionOffset> offsets_of(const rd_kafka_topic_partition_list_t& list) {
  std::vector<PartitionOffset> offsets;
  offsets.reserve(static_cast<std::size_t>(list.cnt));
  for (int i = 0; i < list.cnt; ++i) {
    offsets.push_back({list.elems[i].partition, list.elems[i].offset});
  }
  return offsets;
}

rd_kafka_resp_err_t first_error(const rd_kafka_topic_partition_list_t& list) noexcept {
  for (int i = 0; i < list.cnt; ++i) {
    if (list.elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) return list.elems[i].err;
  }
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/// Another try may find it: the broker restarts, or another takes the group over.
bool coordinator_is_away(rd_kafka_resp_err_t code) noexcept {
  switch (code) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
      return true;
    default:
      return false;
  }
}

std::map<std::string, std::string> consumer_defaults(const ConsumerOptions& options) {
  return {
      {"partition.assignment.strategy", options.assignment_strategy},
      {"auto.offset.reset", options.offset_reset},
      // A full partition is looked at again only after a second (librdkafka 2.0.2), so the number
      // of messages must never be what stops fetching; bytes do.
      {"queued.min.messages", "1000000"},
      {"queued.max.messages.kbytes", std::to_string(options.prefetch_bytes_max / 1024)},
      {"fetch.wait.max.ms", "20"},
      {"fetch.error.backoff.ms", "100"},
      {"reconnect.backoff.max.ms", "2000"},
  };
}

}  // namespace

void MessageBatch::clear() noexcept {
  for (std::size_t i = 0; i < size_; ++i) rd_kafka_message_destroy(slots_[i]);
  size_ = 0;
}

KafkaConsumer::KafkaConsumer(ConsumerOptions options, Metrics& metrics, LogCallback log)
    : options_(std::move(options)), metrics_(&metrics), log_(std::move(log)) {}

KafkaConsumer::~KafkaConsumer() {
  listener_ = nullptr;
}

void KafkaConsumer::report(LogLevel level, std::string_view text) const {
  if (log_) log_(level, text);
}

Result<std::unique_ptr<KafkaConsumer>> KafkaConsumer::create(const ConsumerOptions& options,
                                                             Metrics& metrics, LogCallback log) {
  std::map<std::string, std::string> fixed = {{"group.id", options.group_id},
                                              {"enable.auto.commit", "false"},
                                              {"enable.auto.offset.store", "false"}};
  if (options.report_ends) fixed["enable.partition.eof"] = "true";
  if (!options.group_instance_id.empty()) fixed["group.instance.id"] = options.group_instance_id;
  auto conf = kafka::make_conf(options.connection, consumer_defaults(options), fixed);
  if (!conf.ok()) return conf.status();

  std::unique_ptr<KafkaConsumer> self(new KafkaConsumer(options, metrics, std::move(log)));
  rd_kafka_conf_t* raw = conf.value().get();
  rd_kafka_conf_set_opaque(raw, self.get());
  rd_kafka_conf_set_rebalance_cb(
      raw, [](rd_kafka_t*, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* list,
              void* opaque) { static_cast<KafkaConsumer*>(opaque)->rebalance(what, list); });
  rd_kafka_conf_set_offset_commit_cb(raw, [](rd_kafka_t*, rd_kafka_resp_err_t code,
                                             rd_kafka_topic_partition_list_t*, void* opaque) {
    auto* consumer = static_cast<KafkaConsumer*>(opaque);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      consumer->metrics_->commits.add();
    } else if (code != RD_KAFKA_RESP_ERR__NO_OFFSET) {
      consumer->metrics_->commit_failures.add();
      consumer->commit_failed_ = true;
      consumer->report(LogLevel::kWarning,
                       fmt::format("commit failed, will be repeated: {}", rd_kafka_err2str(code)));
    }
  });
  rd_kafka_conf_set_error_cb(raw, [](rd_kafka_t*, int code, const char* reason, void* opaque) {
    auto* consumer = static_cast<KafkaConsumer*>(opaque);
    consumer->report(LogLevel::kWarning,
                     fmt::format("kafka: {}: {}",
                                 rd_kafka_err2str(static_cast<rd_kafka_resp_err_t>(code)), reason));
    if (code == RD_KAFKA_RESP_ERR__FATAL) consumer->look_for_fatal_error();
  });
  rd_kafka_conf_set_log_cb(
      raw, [](const rd_kafka_t* handle, int level, const char* facility, const char* text) {
        const auto* consumer = static_cast<const KafkaConsumer*>(rd_kafka_opaque(handle));
        constexpr int kSyslogWarning = 4;
        consumer->report(level <= kSyslogWarning ? LogLevel::kWarning : LogLevel::kDebug,
                         fmt::format("kafka: {}: {}", facility, text));
      });

  char text[512] = {};
  self->handle_.reset(rd_kafka_new(RD_KAFKA_CONSUMER, raw, text, sizeof text));
  if (!self->handle_) {
    return Status::error(StatusCode::kInvalidArgument, fmt::format("kafka consumer: {}", text));
  }
  (void)conf.value().release();  // the handle owns it now
  rd_kafka_poll_set_consumer(self->handle_.get());
  self->queue_.reset(rd_kafka_queue_get_consumer(self->handle_.get()));
  return self;
}

kafka::Ptr<rd_kafka_topic_partition_list_t> KafkaConsumer::list_of(
    std::span<const PartitionOffset> partitions) const {
  kafka::Ptr<rd_kafka_topic_partition_list_t> list(
      rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const PartitionOffset& at : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), options_.topic.c_str(), at.partition)->offset =
        at.offset;
  }
  return list;
}

Status KafkaConsumer::subscribe(AssignmentListener& listener) {
  listener_ = &listener;
  const PartitionOffset any{RD_KAFKA_PARTITION_UA, PartitionOffset::kNone};
  const auto list = list_of({&any, 1});
  return kafka_status(rd_kafka_subscribe(handle_.get(), list.get()),
                      "subscribing to " + options_.topic);
}

Status KafkaConsumer::assign(std::span<const PartitionOffset> partitions) {
  const auto list = list_of(partitions);
  return kafka_status(rd_kafka_assign(handle_.get(), list.get()), "assigning " + options_.topic);
}

void KafkaConsumer::close() {
  if (!handle_) return;
  queue_.reset();
  const rd_kafka_resp_err_t code = rd_kafka_consumer_close(handle_.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    report(LogLevel::kWarning, fmt::format("leaving the group: {}", rd_kafka_err2str(code)));
  }
  listener_ = nullptr;
  handle_.reset();
}

void KafkaConsumer::rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* list) {
  ++rebalances_;
  metrics_->rebalances.add();
  if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    take_over(list);
  } else {
    if (what != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
      report(LogLevel::kError, fmt::format("rebalance failed: {}", rd_kafka_err2str(what)));
    }
    give_up(list);
  }
}

void KafkaConsumer::take_over(rd_kafka_topic_partition_list_t* list) {
  std::vector<PartitionOffset> partitions = offsets_of(*list);
  for (PartitionOffset& at : partitions) at.offset = PartitionOffset::kNone;
  if (listener_ != nullptr) listener_->on_assigning(partitions);
  const auto with_offsets = list_of(partitions);
  if (std::strcmp(rd_kafka_rebalance_protocol(handle_.get()), "COOPERATIVE") == 0) {
    const kafka::Ptr<rd_kafka_error_t> error(
        rd_kafka_incremental_assign(handle_.get(), with_offsets.get()));
    if (error) report(LogLevel::kError, rd_kafka_error_string(error.get()));
  } else {
    const auto code = rd_kafka_assign(handle_.get(), with_offsets.get());
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) report(LogLevel::kError, rd_kafka_err2str(code));
  }
  if (listener_ != nullptr) listener_->on_assigned(partitions);
}

void KafkaConsumer::give_up(const rd_kafka_topic_partition_list_t* list) {
  const std::vector<PartitionOffset> partitions = offsets_of(*list);
  const bool lost = rd_kafka_assignment_lost(handle_.get()) != 0;
  if (lost) report(LogLevel::kWarning, "the assignment was lost: nothing is committed");
  if (listener_ != nullptr) listener_->on_revoking(partitions, lost);
  if (std::strcmp(rd_kafka_rebalance_protocol(handle_.get()), "COOPERATIVE") == 0) {
    const kafka::Ptr<rd_kafka_error_t> error(rd_kafka_incremental_unassign(handle_.get(), list));
    if (error) report(LogLevel::kError, rd_kafka_error_string(error.get()));
  } else {
    rd_kafka_assign(handle_.get(), nullptr);
  }
}

bool KafkaConsumer::poll(MessageBatch& batch, std::chrono::milliseconds first_wait,
                         std::chrono::milliseconds more_wait) {
  batch.clear();
  rd_kafka_message_t* first = rd_kafka_consumer_poll(handle_.get(), to_int_ms(first_wait));
  if (first == nullptr) return true;
  batch.slots_[0] = first;
  batch.size_ = 1;
  if (batch.limit_ < 2) {
    drop_error_messages(batch);
    return true;
  }
  // From here on messages are held while callbacks may run.
  const std::uint64_t rebalances_before = rebalances_;
  const ssize_t more = rd_kafka_consume_batch_queue(queue_.get(), to_int_ms(more_wait),
                                                    batch.slots_.data() + 1, batch.limit_ - 1);
  if (more > 0) batch.size_ += static_cast<std::size_t>(more);
  drop_error_messages(batch);
  return rebalances_ == rebalances_before;
}

void KafkaConsumer::drop_error_messages(MessageBatch& batch) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < batch.size_; ++i) {
    rd_kafka_message_t* message = batch.slots_[i];
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (!partition_errors_.empty()) {
        partition_errors_.erase(message->partition);
        partition_errors_.erase(kTopic);
      }
      batch.slots_[kept++] = message;
      continue;
    }
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      ends_reached_[message->partition] = message->offset;
      partition_errors_.erase(message->partition);
      partition_errors_.erase(kTopic);
    } else {
      note_error(*message);
    }
    rd_kafka_message_destroy(message);
  }
  batch.size_ = kept;
}

void KafkaConsumer::note_error(const rd_kafka_message_t& message) {
  if (message.err == RD_KAFKA_RESP_ERR__FATAL) return look_for_fatal_error();
  // Only the consumer as a whole is meant by an error that names no partition.
  const std::int32_t partition = std::max(message.partition, kTopic);
  const char* const said = rd_kafka_message_errstr(&message);
  std::string& last = partition_errors_[partition];
  if (last == said) return;
  last = said;
  report(LogLevel::kError, partition == kTopic
                               ? fmt::format("kafka: {}", said)
                               : fmt::format("kafka: partition {}: {}", partition, said));
}

void KafkaConsumer::look_for_fatal_error() {
  if (fatal_) return;
  char text[512] = {};
  const auto code = rd_kafka_fatal_error(handle_.get(), text, sizeof text);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  fatal_ = fmt::format("kafka gives nothing any more, and only a restart helps: {}: {}",
                       rd_kafka_err2name(code), text);
}

void KafkaConsumer::commit_async(std::span<const PartitionOffset> offsets) {
  if (offsets.empty()) return;
  const auto list = list_of(offsets);
  const auto code = rd_kafka_commit(handle_.get(), list.get(), 1);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  metrics_->commit_failures.add();
  commit_failed_ = true;
}

Status KafkaConsumer::commit_sync(std::span<const PartitionOffset> offsets) {
  constexpr std::chrono::seconds kPatience{5};
  constexpr std::chrono::milliseconds kBetweenTries{100};
  if (offsets.empty()) return {};
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const auto list = list_of(offsets);
  rd_kafka_resp_err_t code = rd_kafka_commit(handle_.get(), list.get(), 0);
  while (coordinator_is_away(code) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kBetweenTries);
    code = rd_kafka_commit(handle_.get(), list.get(), 0);
  }
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    metrics_->commits.add();
  } else {
    metrics_->commit_failures.add();
  }
  return kafka_status(code, "committing");
}

void KafkaConsumer::pause(std::span<const PartitionOffset> partitions) {
  const auto list = list_of(partitions);
  rd_kafka_pause_partitions(handle_.get(), list.get());
}

void KafkaConsumer::resume(std::span<const PartitionOffset> partitions) {
  const auto list = list_of(partitions);
  rd_kafka_resume_partitions(handle_.get(), list.get());
}

void KafkaConsumer::seek(std::span<const PartitionOffset> partitions,
                         std::vector<std::int32_t>& failed) {
  constexpr int kSeekTimeoutMs = 5000;
  const auto list = list_of(partitions);
  const kafka::Ptr<rd_kafka_error_t> error(
      rd_kafka_seek_partitions(handle_.get(), list.get(), kSeekTimeoutMs));
  for (int i = 0; i < list->cnt; ++i) {
    if (error || list->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      failed.push_back(list->elems[i].partition);
    }
  }
}

Status KafkaConsumer::committed(std::vector<PartitionOffset>& partitions,
                                std::chrono::milliseconds timeout) {
  const auto list = list_of(partitions);
  const auto code = rd_kafka_committed(handle_.get(), list.get(), to_int_ms(timeout));
  // An offset that could not be read is not one that was never committed.
  const auto first = code == RD_KAFKA_RESP_ERR_NO_ERROR ? first_error(*list) : code;
  if (first == RD_KAFKA_RESP_ERR_NO_ERROR) partitions = offsets_of(*list);
  return kafka_status(first, "reading the group's committed offsets");
}

Status KafkaConsumer::offsets_at(Instant time, std::vector<PartitionOffset>& partitions,
                                 std::chrono::milliseconds timeout) {
  for (PartitionOffset& at : partitions) at.offset = to_ms(time);
  const auto list = list_of(partitions);
  const auto code = rd_kafka_offsets_for_times(handle_.get(), list.get(), to_int_ms(timeout));
  partitions = offsets_of(*list);
  for (int i = 0; i < list->cnt; ++i) {
    PartitionOffset& at = partitions[static_cast<std::size_t>(i)];
    const bool found = code == RD_KAFKA_RESP_ERR_NO_ERROR &&
                       list->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR && at.offset >= 0;
    if (!found) at.offset = PartitionOffset::kNone;
  }
  return kafka_status(code == RD_KAFKA_RESP_ERR_NO_ERROR ? first_error(*list) : code,
                      "looking offsets up by time");
}

Result<KafkaConsumer::Watermarks> KafkaConsumer::watermarks(std::int32_t partition,
                                                            std::chrono::milliseconds timeout) {
  Watermarks marks;
  const auto code =
      rd_kafka_query_watermark_offsets(handle_.get(), options_.topic.c_str(), partition, &marks.low,
                                       &marks.high, to_int_ms(timeout));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return kafka_status(code, "asking for a partition's ends");
  return marks;
}

std::optional<std::int64_t> KafkaConsumer::known_end(std::int32_t partition) const {
  Watermarks marks{-1, -1};
  if (rd_kafka_get_watermark_offsets(handle_.get(), options_.topic.c_str(), partition, &marks.low,
                                     &marks.high) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      marks.high < 0) {
    return std::nullopt;
  }
  return marks.high;
}

Result<std::int32_t> KafkaConsumer::partition_count(std::chrono::milliseconds timeout) {
  rd_kafka_topic_t* topic = rd_kafka_topic_new(handle_.get(), options_.topic.c_str(), nullptr);
  if (topic == nullptr) return kafka_status(rd_kafka_last_error(), "topic " + options_.topic);
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto code = rd_kafka_metadata(handle_.get(), 0, topic, &metadata, to_int_ms(timeout));
  rd_kafka_topic_destroy(topic);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return kafka_status(code, "reading the topic's metadata");
  const std::int32_t count = metadata->topic_cnt > 0 ? metadata->topics[0].partition_cnt : 0;
  rd_kafka_metadata_destroy(metadata);
  if (count == 0) {
    return Status::error(StatusCode::kNotFound,
                         fmt::format("topic {} does not exist (kafka.topic)", options_.topic));
  }
  return count;
}

}  // namespace fcap::updater
