#include "updater/options/part_options.h"

#include <algorithm>
#include <random>
#include <utility>

#include "updater/options/libraries.h"

namespace fcap::updater {
namespace {

std::string_view word(KafkaSettings::OffsetReset reset) noexcept {
  switch (reset) {
    case KafkaSettings::OffsetReset::kEarliest:
      return "earliest";
    case KafkaSettings::OffsetReset::kLatest:
      return "latest";
    case KafkaSettings::OffsetReset::kError:
      return "error";
  }
  return "earliest";
}

}  // namespace

NewestEvent newest_event_by(std::shared_ptr<events::EventDecoder> decoder) {
  return [decoder = std::move(decoder)](std::string_view payload) {
    std::vector<events::Event> found;
    events::Rejected why;
    std::optional<Instant> newest;
    if (decoder->decode(payload, found, why) != events::Decoded::kEvents) return newest;
    for (const events::Event& event : found) newest = std::max(newest, std::optional(event.time));
    return newest;
  };
}

TopicWatchOptions watch_options(const Settings& settings) {
  TopicWatchOptions options;
  options.connection = kafka_connection(settings.kafka);
  options.topic = settings.kafka.topic;
  options.dead_letter_topic = settings.kafka.dead_letter_topic;
  options.group_id = settings.kafka.group_id;
  options.retention = settings.ledger.retention;
  // As the updater itself decodes: no setting names another encoding, and JSON needs nothing of a
  // message but its value, which is all that a look has. The watch's thread has a decoder of its
  // own, because none is thread-safe.
  options.newest_event = newest_event_by(events::make_json_event_decoder());
  options.silence_max = settings.kafka.silence_max;
  // So that an answer that is missed once is not taken for silence.
  options.interval = std::min(options.interval, options.silence_max / 4);
  options.answer_within = std::min(options.answer_within, options.silence_max / 2);
  return options;
}

UpdaterOptions updater_options(const Settings& settings) {
  const KafkaSettings& kafka = settings.kafka;
  const PipelineSettings& pipeline = settings.pipeline;
  const LedgerSettings& ledger = settings.ledger;
  std::random_device entropy;
  UpdaterOptions options;
  options.consumer.connection = kafka_connection(kafka);
  options.consumer.topic = kafka.topic;
  options.consumer.group_id = kafka.group_id;
  options.consumer.group_instance_id = kafka.group_instance_id;
  if (kafka.assignment == KafkaSettings::Assignment::kCooperativeSticky) {
    options.consumer.assignment_strategy = "cooperative-sticky";
  }
  options.consumer.offset_reset = word(kafka.offset_reset);
  options.intake.retention = ledger.retention;
  options.intake.future_allowed = ledger.allowed_future;
  options.intake.null_user_ids = ledger.null_user_ids;
  options.intake.message_bytes_max = static_cast<std::size_t>(pipeline.message_bytes_max);
  options.rejections.share_max = pipeline.rejected_share_max;
  options.write.deadline = pipeline.redis_deadline;
  options.write.backoff_min = pipeline.retry_backoff_min;
  options.write.backoff_max = pipeline.retry_backoff_max;
  options.write.bytes_in_flight_max = static_cast<std::size_t>(pipeline.in_flight_bytes_max);
  options.write.jitter_seed = entropy();
  options.mark.deadline = pipeline.redis_deadline;
  options.mark.interval = pipeline.mark_interval;
  if (pipeline.gap_messages_min > 0) options.mark.gap_min = pipeline.gap_messages_min;
  options.mark.backoff_min = pipeline.retry_backoff_min;
  options.mark.backoff_max = pipeline.retry_backoff_max;
  options.mark.jitter_seed = entropy();
  options.key_prefix = ledger.key_prefix;
  options.batch_messages_max = static_cast<std::size_t>(pipeline.batch_events_max);
  options.batch_wait = pipeline.batch_wait;
  options.commit_interval = pipeline.commit_interval;
  options.drain_timeout = pipeline.drain_timeout;
  return options;
}

redis::ConfigRecord config_record(const Settings& settings) {
  redis::ConfigRecord record;
  record.key_prefix = settings.ledger.key_prefix;
  record.retention = settings.ledger.retention;
  record.null_user_ids = settings.ledger.null_user_ids;
  record.record_bytes_max = static_cast<std::size_t>(settings.ledger.record_bytes_max);
  record.reservation_life_max = settings.reservation.max_life;
  return record;
}

Compactor::Options compactor_options(const Settings& settings) {
  const CompactionSettings& compaction = settings.compaction;
  Compactor::Options options;
  options.users.users_max = static_cast<std::size_t>(compaction.queue_users_max);
  options.users.tail_bytes_min = static_cast<std::size_t>(compaction.tail_bytes_min);
  options.users.tail_share = compaction.tail_share;
  options.users.record_bytes_max = static_cast<std::size_t>(settings.ledger.record_bytes_max);
  options.records.retention = settings.ledger.retention;
  options.records.record_bytes_max = options.users.record_bytes_max;
  options.records.trim_without_rules = !has_rule_source(settings);
  options.records.in_flight_max = static_cast<std::size_t>(compaction.in_flight_max);
  options.records.deadline = compaction.redis_deadline;
  options.quiet_after = compaction.quiet_after;
  options.drain_timeout = compaction.drain_timeout;
  return options;
}

HttpServer::Options http_options(const Settings& settings) {
  return {.address = settings.http.address, .port = static_cast<std::uint16_t>(settings.http.port)};
}

SweepOptions sweep_options(const Settings& settings) {
  SweepOptions options;
  options.key_prefix = settings.ledger.key_prefix;
  options.keys_per_second = settings.compaction.sweep_keys_per_second;
  options.scan_count = settings.compaction.sweep_scan_count;
  options.deadline = settings.compaction.redis_deadline;
  options.records = compactor_options(settings).records;
  return options;
}

ReplayOptions replay_options(const Settings& settings, const ReplayFlags& flags) {
  UpdaterOptions live = updater_options(settings);
  ReplayOptions options;
  options.consumer = std::move(live.consumer);
  options.consumer.group_id =
      flags.group_id.empty() ? replay_group(settings.kafka) : flags.group_id;
  // Static membership would throw the updater of that name out of its place.
  options.consumer.group_instance_id.clear();
  options.intake = std::move(live.intake);
  options.write.retention = settings.ledger.retention;
  options.write.record_bytes_max = static_cast<std::size_t>(settings.ledger.record_bytes_max);
  options.write.deadline = settings.pipeline.redis_deadline;
  options.write.backoff_min = settings.pipeline.retry_backoff_min;
  options.write.backoff_max = settings.pipeline.retry_backoff_max;
  options.write.jitter_seed = std::random_device{}();
  options.key_prefix = settings.ledger.key_prefix;
  options.partitions = flags.partitions;
  options.from_time = flags.from_time;
  options.to_time = flags.to_time;
  options.from_offset = flags.from_offset.everywhere;
  options.to_offset = flags.to_offset.everywhere;
  options.from_offsets = flags.from_offset.of_partition;
  options.to_offsets = flags.to_offset.of_partition;
  options.resume = flags.resume;
  options.messages_per_second = flags.messages_per_second;
  options.redis_bytes_max = static_cast<std::uint64_t>(flags.redis_bytes_max);
  options.batch_messages_max = static_cast<std::size_t>(settings.pipeline.batch_events_max);
  return options;
}

}  // namespace fcap::updater
