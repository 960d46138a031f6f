#pragma once

#include <memory>
#include <string>
#include <thread>

#include <fcap/redis_options.h>
#include <fcap/status.h>

#include "kafka/conf.h"
#include "kafka/handles.h"
#include "updater/pipeline/dead_letter.h"

namespace fcap::updater {

/// Sends dead letters to a topic: value, key and headers as they were, and headers that say where
/// the message stood and why it was refused (fcap.reason, fcap.member, fcap.topic, fcap.partition,
/// fcap.offset, fcap.timestamp_ms; of a stub fcap.truncated and fcap.bytes; all text).
///
/// Thread safety: send() from any thread; completions come from its own thread, or from within
/// send() where a message is refused at once.
class DeadLetterProducer final : public DeadLetterSink {
 public:
  static Result<std::unique_ptr<DeadLetterProducer>> create(const kafka::Connection& connection,
                                                            std::string topic, LogCallback log);
  /// Ends what is under way: delivered within a second, or failed.
  ~DeadLetterProducer() override;
  DeadLetterProducer(const DeadLetterProducer&) = delete;
  DeadLetterProducer& operator=(const DeadLetterProducer&) = delete;

  void send(const DeadLetter& letter, DeadLetterCompletion& done) noexcept override;

 private:
  DeadLetterProducer(std::string topic, LogCallback log);
  void answer(rd_kafka_resp_err_t code, DeadLetterCompletion& done) const noexcept;

  std::string topic_;
  LogCallback log_;
  kafka::Ptr<rd_kafka_t> handle_;
  std::jthread poller_;
};

}  // namespace fcap::updater
