#include "updater/pipeline/from_settings.h"

#include <random>

#include <fmt/ranges.h>

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

kafka::Connection kafka_connection(const KafkaSettings& kafka) {
  kafka::Connection connection;
  connection.brokers = fmt::format("{}", fmt::join(kafka.brokers, ","));
  connection.client_id = kafka.client_id;
  connection.sasl_password = kafka.sasl_password;
  connection.properties = kafka.properties;
  return connection;
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
  options.write.deadline = pipeline.redis_deadline;
  options.write.backoff_min = pipeline.retry_backoff_min;
  options.write.backoff_max = pipeline.retry_backoff_max;
  options.write.bytes_in_flight_max = static_cast<std::size_t>(pipeline.in_flight_bytes_max);
  options.write.jitter_seed = entropy();
  options.mark.deadline = pipeline.redis_deadline;
  options.mark.interval = pipeline.mark_interval;
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

}  // namespace fcap::updater
