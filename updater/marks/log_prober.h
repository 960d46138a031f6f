#pragma once

#include <future>
#include <memory>
#include <optional>

#include <fcap/status.h>

#include "kafka/groupless_consumer.h"
#include "updater/marks/log_look.h"

namespace fcap::updater {

/// Looks at logs with a small Kafka consumer and a thread of its own. It joins no group: nothing is
/// committed, and no rebalance happens because of it.
class LogProber final : public LogLooks {
 public:
  using Options = kafka::GrouplessConsumer::Options;
  /// Sets the consumer's defaults itself.
  static Result<std::unique_ptr<LogProber>> create(Options options);
  /// Does not wait long for a pending query; its thread ends by itself.
  ~LogProber();
  LogProber(const LogProber&) = delete;
  LogProber& operator=(const LogProber&) = delete;

  void ask(LookQuestion question) override;
  std::optional<LookAnswer> take() override;

 private:
  struct State;
  LogProber(std::shared_ptr<State> state, std::future<void> ended)
      : state_(std::move(state)), ended_(std::move(ended)) {}

  std::shared_ptr<State> state_;
  std::future<void> ended_;
};

}  // namespace fcap::updater
