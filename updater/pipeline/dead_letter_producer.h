#pragma once

#include <memory>
#include <string>
#include <utility>

#include <fcap/log.h>
#include <fcap/status.h>

#include "kafka/conf.h"
#include "kafka/producer.h"
#include "updater/pipeline/dead_letter.h"

namespace fcap::updater {

/// Sends dead letters to a topic: value, key and headers unchanged, and headers that say where the
/// message was and why it was refused (fcap.reason, fcap.member, fcap.topic, fcap.partition,
/// fcap.offset, fcap.timestamp_ms; of a stub fcap.truncated and fcap.bytes; all text).
///
/// Thread safety: as kafka::Producer.
class DeadLetterProducer final : public DeadLetterSink {
 public:
  static Result<std::unique_ptr<DeadLetterProducer>> create(
      const kafka::ConnectionOptions& connection, std::string topic, LogCallback log);

  void send(const DeadLetter& letter, DeadLetterCompletion& done) noexcept override;

 private:
  explicit DeadLetterProducer(std::unique_ptr<kafka::Producer> producer)
      : producer_(std::move(producer)) {}

  std::unique_ptr<kafka::Producer> producer_;
};

}  // namespace fcap::updater
