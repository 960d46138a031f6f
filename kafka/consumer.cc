#include "kafka/consumer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "kafka/leader_moves.h"

namespace fcap::kafka {
namespace {

// Whether the error says that a topic, a partition or its leader does not exist. Each may exist by
// now: librdkafka reports that it is missing, and not that it has come.
bool is_absence(rd_kafka_resp_err_t code) noexcept {
  switch (code) {
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
      return true;
    default:
      return false;
  }
}

// For how long, in milliseconds, a group waits for a member that does not come back to a rebalance;
// meanwhile nobody reads. By librdkafka's default it is five minutes: in a chaos run, two groups
// read nothing for exactly that long after their broker had been frozen. poll() is called far more
// often. Not shorter than the session, which librdkafka would refuse.
std::string rebalance_wait_ms(const Properties& properties) {
  long long wait = 60'000;
  const auto session = properties.find("session.timeout.ms");
  if (session != properties.end()) {
    long long asked = 0;
    const char* const end = session->second.data() + session->second.size();
    if (std::from_chars(session->second.data(), end, asked).ec == std::errc()) {
      wait = std::max(wait, asked);
    }
  }
  return std::to_string(wait);
}

std::map<std::string, std::string> consumer_defaults(const ConsumerOptions& options) {
  return {
      {"partition.assignment.strategy", options.assignment_strategy},
      {"auto.offset.reset", options.offset_reset},
      {"max.poll.interval.ms", rebalance_wait_ms(options.connection.properties)},
      // A full partition is looked at again only after a second (librdkafka 2.0.2), so the number
      // of messages must never be what stops fetching; bytes do.
      {"queued.min.messages", "1000000"},
      {"queued.max.messages.kbytes", std::to_string(options.prefetch_bytes_max / 1024)},
      {"fetch.wait.max.ms", "20"},
      {"fetch.error.backoff.ms", "100"},
      {"reconnect.backoff.max.ms", "2000"},
      // Whoever joins the group waits for the topic's metadata. Where librdkafka 2.0.2 loses that
      // answer (it gives a request up when three connections were lost under it, and tells nobody),
      // it goes on at the next refresh, by default within five minutes, and is silent until then.
      {"topic.metadata.refresh.interval.ms", "5000"},
      {"metadata.max.age.ms", "900000"},  // its default, which otherwise follows the interval
      // A host that is gone answers no connection; by default each try takes half a minute.
      {"socket.connection.setup.timeout.ms", "10000"},
  };
}

}  // namespace

void MessageBatch::clear() noexcept {
  for (std::size_t i = 0; i < size_; ++i) rd_kafka_message_destroy(slots_[i]);
  size_ = 0;
}

Consumer::Consumer(ConsumerOptions options, CountEvent count, LogCallback log)
    : options_(std::move(options)),
      count_(std::move(count)),
      log_(std::move(log)),
      context_(std::make_shared<ConsumerContext>(this, log_)) {}

Consumer::~Consumer() {
  listener_ = nullptr;
  if (!client_) return;
  constexpr std::chrono::seconds kLeaving{5};
  (void)leave(std::chrono::steady_clock::now() + kLeaving);
}

void Consumer::count(ConsumerEvent event) const {
  if (count_) count_(event);
}

void Consumer::report(LogLevel level, std::string_view text) const {
  if (log_) log_(level, text);
}

Result<std::unique_ptr<Consumer>> Consumer::create(const ConsumerOptions& options, CountEvent count,
                                                   LogCallback log) {
  std::map<std::string, std::string> fixed = {{"group.id", options.group_id},
                                              {"enable.auto.commit", "false"},
                                              {"enable.auto.offset.store", "false"},
                                              {"enable.partition.eof", "true"}};
  if (!options.group_instance_id.empty()) fixed["group.instance.id"] = options.group_instance_id;
  auto conf = make_conf(options.connection, consumer_defaults(options), fixed);
  if (!conf.ok()) return conf.status();

  std::unique_ptr<Consumer> self(new Consumer(options, std::move(count), std::move(log)));
  rd_kafka_conf_t* raw = conf.value().get();
  rd_kafka_conf_set_opaque(raw, self->context_.get());
  rd_kafka_conf_set_rebalance_cb(raw, [](rd_kafka_t*, rd_kafka_resp_err_t what,
                                         rd_kafka_topic_partition_list_t* list, void* opaque) {
    static_cast<ConsumerContext*>(opaque)->consumer->rebalance(what, list);
  });
  rd_kafka_conf_set_offset_commit_cb(raw, [](rd_kafka_t*, rd_kafka_resp_err_t code,
                                             rd_kafka_topic_partition_list_t*, void* opaque) {
    static_cast<ConsumerContext*>(opaque)->consumer->note_commit(code);
  });
  rd_kafka_conf_set_error_cb(raw, [](rd_kafka_t*, int code, const char* reason, void* opaque) {
    static_cast<ConsumerContext*>(opaque)->consumer->note_client_error(code, reason);
  });
  rd_kafka_conf_set_log_cb(raw, [](const rd_kafka_t* handle, int level, const char* facility,
                                   const char* text) {
    auto* context = static_cast<ConsumerContext*>(rd_kafka_opaque(handle));
    // librdkafka logs each attempt; the error that follows says it, too, and less often.
    const bool is_repeated = context->refused_certificate.take_log(facility, text);
    constexpr int kSyslogWarning = 4;
    // librdkafka says of nothing else but this line that an offset was reset.
    if (level <= kSyslogWarning && std::string_view(facility) == "OFFSET") {
      context->offset_resets.fetch_add(1, std::memory_order_release);
    }
    if (!context->log) return;
    context->log(level <= kSyslogWarning && !is_repeated ? LogLevel::kWarning : LogLevel::kDebug,
                 fmt::format("kafka: {}: {}", facility, text));
  });

  auto made = KafkaClient::create(RD_KAFKA_CONSUMER, std::move(conf).value(), self->context_);
  if (!made.ok()) return made.status();
  self->client_ = std::move(made).value();
  rd_kafka_poll_set_consumer(self->client_.get());
  self->queue_.reset(rd_kafka_queue_get_consumer(self->client_.get()));
  return self;
}

PartitionList Consumer::list_of(std::span<const PartitionOffset> partitions) const {
  return make_partition_list(options_.topic, partitions);
}

Status Consumer::subscribe(AssignmentListener& listener) {
  listener_ = &listener;
  const PartitionOffset any{RD_KAFKA_PARTITION_UA};
  const auto list = list_of({&any, 1});
  return status_of(rd_kafka_subscribe(client_.get(), list.get()),
                   "subscribing to " + options_.topic);
}

bool Consumer::cooperative() const {
  const char* const protocol = rd_kafka_rebalance_protocol(client_.get());
  return protocol != nullptr && std::strcmp(protocol, "COOPERATIVE") == 0;
}

Status Consumer::assign(std::span<const PartitionOffset> partitions) {
  const std::string doing = "assigning " + options_.topic;
  const auto list = list_of(partitions);
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (cooperative()) {
    std::vector<PartitionOffset> again(partitions.begin(), partitions.end());
    std::erase_if(again, [this](const auto& at) { return !begun(at.partition); });
    const auto given_up = list_of(again);
    Ptr<rd_kafka_error_t> error;
    if (!again.empty()) error.reset(rd_kafka_incremental_unassign(client_.get(), given_up.get()));
    if (!error) {
      for (const PartitionOffset& at : again) begun_.erase(at.partition);
      error.reset(rd_kafka_incremental_assign(client_.get(), list.get()));
    }
    if (error) code = rd_kafka_error_code(error.get());
  } else {
    code = rd_kafka_assign(client_.get(), list.get());
    begun_.clear();
  }
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return status_of(code, doing);
  for (const PartitionOffset& at : partitions) begun_.insert(at.partition);
  return {};
}

void Consumer::rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* list) {
  ++rebalances_;
  count(ConsumerEvent::kRebalanced);
  if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    take_over(list);
  } else {
    if (what != RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
      report(LogLevel::kError, fmt::format("rebalance failed: {}", rd_kafka_err2str(what)));
    }
    give_up(list);
  }
}

// A static member that comes back gets the partitions that it had before, even if it now subscribes
// to another topic. Those partitions' numbers must not be taken for this topic's.
void Consumer::note_others(std::size_t partitions) {
  if (partitions == 0) {
    const auto noted = partition_errors_.find(kTopic);
    if (noted != partition_errors_.end() && noted->second.code == RD_KAFKA_RESP_ERR__STATE) {
      partition_errors_.erase(noted);
    }
    return;
  }
  note_unreadable(kTopic,
                  fmt::format("the group has assigned {} of another topic, and nothing is read of "
                              "it: the topic was changed under kafka.group_instance_id; stop this "
                              "updater for longer than its session, or give it another "
                              "kafka.group_id",
                              partitions == 1 ? "a partition" : "partitions"));
}

void Consumer::take_over(rd_kafka_topic_partition_list_t* list) {
  std::vector<PartitionOffset> partitions = offsets_of(options_.topic, *list);
  note_others(static_cast<std::size_t>(list->cnt) - partitions.size());
  for (PartitionOffset& at : partitions) at.offset = PartitionOffset::kNone;
  if (listener_ != nullptr) listener_->on_assigning(partitions);
  // A pause outlives the assignment that it was made in: a partition that was lost while it was
  // paused would stay so forever.
  rd_kafka_resume_partitions(client_.get(), list);
  // Without an offset librdkafka asks the group's coordinator for the committed one, and if that
  // refuses (it has just started, it has moved), the partition is never read: neither a seek nor
  // time helps.
  std::erase_if(partitions, [](const auto& at) { return at.offset == PartitionOffset::kNone; });
  const Status status = assign(partitions);
  if (!status.ok()) report(LogLevel::kError, status.text());
}

void Consumer::give_up(const rd_kafka_topic_partition_list_t* list) {
  const std::vector<PartitionOffset> partitions = offsets_of(options_.topic, *list);
  // Whoever gets them next says what is wrong with them.
  for (const PartitionOffset& at : partitions) partition_errors_.erase(at.partition);
  const bool lost = rd_kafka_assignment_lost(client_.get()) != 0;
  if (lost) report(LogLevel::kWarning, "the assignment was lost: nothing is committed");
  if (listener_ != nullptr) listener_->on_revoking(partitions, lost);
  if (cooperative()) {
    // librdkafka refuses the whole list if a single partition in it was never assigned to it.
    std::vector<PartitionOffset> given = partitions;
    std::erase_if(given, [this](const auto& at) { return begun_.erase(at.partition) == 0; });
    const auto given_up = list_of(given);
    const Ptr<rd_kafka_error_t> error(rd_kafka_incremental_unassign(client_.get(), given_up.get()));
    if (error) report(LogLevel::kError, rd_kafka_error_string(error.get()));
  } else {
    rd_kafka_assign(client_.get(), nullptr);
    begun_.clear();
  }
}

bool Consumer::poll(MessageBatch& batch, std::chrono::milliseconds first_wait,
                    std::chrono::milliseconds more_wait) {
  batch.clear();
  batch.filled_ = false;
  ends_reached_.clear();
  rd_kafka_message_t* first = rd_kafka_consumer_poll(client_.get(), to_int_ms(first_wait));
  if (first == nullptr) return true;
  batch.slots_[0] = first;
  batch.size_ = 1;
  batch.filled_ = batch.limit_ < 2;
  if (batch.filled_) {
    drop_error_messages(batch);
    return true;
  }
  // From here on messages are held while callbacks may run: a rebalance in between may take away
  // the partitions that they are from.
  const std::uint64_t rebalances_before = rebalances_;
  const ssize_t more = rd_kafka_consume_batch_queue(queue_.get(), to_int_ms(more_wait),
                                                    batch.slots_.data() + 1, batch.limit_ - 1);
  if (more > 0) batch.size_ += static_cast<std::size_t>(more);
  batch.filled_ = batch.size_ >= batch.limit_;
  drop_error_messages(batch);
  return rebalances_ == rebalances_before;
}

void Consumer::drop_error_messages(MessageBatch& batch) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < batch.size_; ++i) {
    rd_kafka_message_t* message = batch.slots_[i];
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (!partition_errors_.empty()) note_delivered(message->partition);
      batch.slots_[kept++] = message;
      continue;
    }
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      ends_reached_[message->partition] = message->offset;
      note_delivered(message->partition);
    } else {
      note_error(*message);
    }
    rd_kafka_message_destroy(message);
  }
  batch.size_ = kept;
}

void Consumer::note_delivered(std::int32_t partition) {
  partition_errors_.erase(partition);
  partition_errors_.erase(kTopic);
}

void Consumer::note_error(const rd_kafka_message_t& message) {
  if (message.err == RD_KAFKA_RESP_ERR__FATAL) return look_for_fatal_error();
  ++troubles_;
  // An error that names no topic is about the consumer as a whole.
  const std::int32_t partition =
      message.rkt == nullptr ? kTopic : std::max(message.partition, kTopic);
  const char* const said = rd_kafka_message_errstr(&message);
  const PartitionError error{message.err, said, std::chrono::steady_clock::now()};
  if (std::exchange(partition_errors_[partition], error).text == said) return;
  report_error(LogLevel::kError, partition, said);
}

void Consumer::report_error(LogLevel level, std::int32_t partition, std::string_view text) const {
  report(level, partition == kTopic ? fmt::format("kafka: {}", text)
                                    : fmt::format("kafka: partition {}: {}", partition, text));
}

void Consumer::forget_passed_errors(std::chrono::steady_clock::time_point looked,
                                    const std::set<std::int32_t>& without_leader) {
  std::erase_if(partition_errors_, [&](const auto& error) {
    return looked > error.second.since && is_absence(error.second.code) &&
           !without_leader.contains(error.first);
  });
}

void Consumer::note_client_error(int code, const char* reason) {
  ++troubles_;
  const Advice advice = advice_on(code, reason, context_->refused_certificate.why());
  const std::string said =
      fmt::format("{}: {}{}{}", rd_kafka_err2str(static_cast<rd_kafka_resp_err_t>(code)), reason,
                  advice.text.empty() ? "" : "; ", advice.text);
  // "All brokers are down" comes last and says least.
  if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || words_.empty()) words_ = said;
  words_at_ = std::chrono::steady_clock::now();
  report(LogLevel::kWarning, "kafka: " + said);
  if (code == RD_KAFKA_RESP_ERR__FATAL) look_for_fatal_error();
}

void Consumer::look_for_fatal_error() {
  if (fatal_) return;
  char text[512] = {};
  const auto code = rd_kafka_fatal_error(client_.get(), text, sizeof text);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  fatal_ = fmt::format("kafka: the client has failed permanently; restart this process: {}: {}",
                       rd_kafka_err2name(code), text);
}

void Consumer::commit_async(std::span<const PartitionOffset> offsets) {
  if (offsets.empty()) return;
  const auto list = list_of(offsets);
  const auto code = rd_kafka_commit(client_.get(), list.get(), 1);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (commits_unanswered_++ == 0) commits_wait_since_ = std::chrono::steady_clock::now();
    return;
  }
  count(ConsumerEvent::kCommitFailed);
  commit_failed_ = true;
}

// An asynchronous commit has ended.
void Consumer::note_commit(rd_kafka_resp_err_t code) {
  commits_unanswered_ -= std::min<std::size_t>(commits_unanswered_, 1);
  commits_wait_since_.reset();
  if (commits_unanswered_ > 0) commits_wait_since_ = std::chrono::steady_clock::now();
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return count(ConsumerEvent::kCommitted);
  if (code == RD_KAFKA_RESP_ERR__NO_OFFSET) return;
  count(ConsumerEvent::kCommitFailed);
  commit_failed_ = true;
  report(LogLevel::kWarning,
         fmt::format("the commit failed and will be retried: {}", rd_kafka_err2str(code)));
}

void Consumer::pause(std::span<const PartitionOffset> partitions) {
  const auto list = list_of(partitions);
  rd_kafka_pause_partitions(client_.get(), list.get());
}

void Consumer::resume(std::span<const PartitionOffset> partitions) {
  const auto list = list_of(partitions);
  rd_kafka_resume_partitions(client_.get(), list.get());
}

void Consumer::seek(std::span<const PartitionOffset> partitions,
                    std::vector<std::int32_t>& failed) {
  constexpr int kSeekTimeoutMs = 5000;
  // Older versions wait for that many microseconds, which is often too short although the seek is
  // done afterwards (librdkafka's pull request 4230).
  constexpr int kFixed = 0x020100ff;
  static const int timeout_ms =
      rd_kafka_version() < kFixed ? kSeekTimeoutMs * 1000 : kSeekTimeoutMs;
  const auto list = list_of(partitions);
  const Ptr<rd_kafka_error_t> error(
      rd_kafka_seek_partitions(client_.get(), list.get(), timeout_ms));
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& at = list->elems[i];
    const auto code = error ? rd_kafka_error_code(error.get()) : at.err;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    failed.push_back(at.partition);
    // The caller tries again. Until it succeeds, the partition delivers nothing.
    note_unreadable(
        at.partition, code,
        fmt::format("cannot be set to offset {}: {}", at.offset, rd_kafka_err2str(code)));
  }
}

void Consumer::note_unreadable(std::int32_t partition, std::string text) {
  note_unreadable(partition, RD_KAFKA_RESP_ERR__STATE, std::move(text));
}

void Consumer::note_unreadable(std::int32_t partition, rd_kafka_resp_err_t code, std::string text) {
  PartitionError& last = partition_errors_[partition];
  if (last.text != text) report_error(LogLevel::kWarning, partition, text);
  last = {code, std::move(text), std::chrono::steady_clock::now()};
}

Status Consumer::committed(std::vector<PartitionOffset>& partitions,
                           std::chrono::milliseconds timeout) {
  const auto list = list_of(partitions);
  const auto code = rd_kafka_committed(client_.get(), list.get(), to_int_ms(timeout));
  // On an error the list stays as it was. An offset that could not be read must not pass for one
  // that was never committed: reading would begin at the wrong place.
  const auto first = code == RD_KAFKA_RESP_ERR_NO_ERROR ? first_error(*list) : code;
  if (first == RD_KAFKA_RESP_ERR_NO_ERROR) partitions = offsets_of(options_.topic, *list);
  return status_of(first, "reading the group's committed offsets");
}

Status Consumer::offsets_at(Instant time, std::vector<PartitionOffset>& partitions,
                            std::chrono::milliseconds timeout) {
  for (PartitionOffset& at : partitions) at.offset = to_ms(time);
  PartitionList list;
  const auto code = ask_leaders(timeout, [&](std::chrono::milliseconds left) {
    list = list_of(partitions);
    const auto whole = rd_kafka_offsets_for_times(client_.get(), list.get(), to_int_ms(left));
    return whole == RD_KAFKA_RESP_ERR_NO_ERROR ? first_error(*list) : whole;
  });
  partitions = offsets_of(options_.topic, *list);
  for (int i = 0; i < list->cnt; ++i) {
    PartitionOffset& at = partitions[static_cast<std::size_t>(i)];
    const bool found = list->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR && at.offset >= 0;
    if (!found || code != RD_KAFKA_RESP_ERR_NO_ERROR) at.offset = PartitionOffset::kNone;
  }
  return status_of(code, "looking offsets up by time");
}

Result<Watermarks> Consumer::watermarks(std::int32_t partition, std::chrono::milliseconds timeout) {
  Watermarks marks;
  const auto code = ask_leaders(timeout, [&](std::chrono::milliseconds left) {
    return rd_kafka_query_watermark_offsets(client_.get(), options_.topic.c_str(), partition,
                                            &marks.low, &marks.high, to_int_ms(left));
  });
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return status_of(code, "asking for a partition's ends");
  return marks;
}

Result<std::int32_t> Consumer::partition_count(std::chrono::milliseconds timeout) {
  const std::string& name = options_.topic;
  rd_kafka_topic_t* topic = rd_kafka_topic_new(client_.get(), name.c_str(), nullptr);
  if (topic == nullptr) return status_of(rd_kafka_last_error(), "topic " + name);
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto code = rd_kafka_metadata(client_.get(), 0, topic, &metadata, to_int_ms(timeout));
  rd_kafka_topic_destroy(topic);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return status_of(code, "reading the topic's metadata");
  const std::int32_t count = metadata->topic_cnt > 0 ? metadata->topics[0].partition_cnt : 0;
  rd_kafka_metadata_destroy(metadata);
  if (count == 0) {
    return Status::error(StatusCode::kNotFound,
                         fmt::format("topic {} does not exist (kafka.topic)", name));
  }
  return count;
}

}  // namespace fcap::kafka
