#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "kafka/consumer.h"

namespace fcap::kafka {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kStep{100};

milliseconds time_left(Clock::time_point until) {
  return std::chrono::ceil<milliseconds>(std::max(until - Clock::now(), Clock::duration::zero()));
}

// Another try may find it: the broker restarts, or another takes the group over.
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

}  // namespace

bool Consumer::leave(Clock::time_point until) {
  // From now on everything comes by this queue: the last rebalance, and messages, which are
  // dropped.
  const Ptr<rd_kafka_queue_t> queue(rd_kafka_queue_new(client_.get()));
  const Ptr<rd_kafka_error_t> error(rd_kafka_consumer_close_queue(client_.get(), queue.get()));
  if (error) {
    report(LogLevel::kWarning,
           fmt::format("leaving the group: {}", rd_kafka_error_string(error.get())));
    return false;
  }
  while (rd_kafka_consumer_closed(client_.get()) == 0 && Clock::now() < until) {
    const auto begun = Clock::now();
    const Ptr<rd_kafka_message_t> dropped(rd_kafka_consume_queue(queue.get(), to_int_ms(kStep)));
    // What the listener does meanwhile (it drains) has a bound of its own.
    until += std::max(Clock::now() - begun - kStep, Clock::duration::zero());
  }
  return rd_kafka_consumer_closed(client_.get()) != 0;
}

void Consumer::close(milliseconds patience) {
  if (!client_) return;
  if (!leave(Clock::now() + patience / 2)) {
    report(LogLevel::kWarning,
           "leaving the group: Kafka does not answer; the group drops this member after its "
           "session timeout");
  }
  listener_ = nullptr;
  queue_.reset();
  client_.end(patience / 2);
}

Status Consumer::commit_sync(std::span<const PartitionOffset> offsets) {
  constexpr std::chrono::seconds kPatience{5};
  if (offsets.empty()) return {};
  const auto until = Clock::now() + kPatience;
  const PartitionList list = list_of(offsets);
  rd_kafka_resp_err_t code = commit_once(*list, until);
  while (coordinator_is_away(code) && Clock::now() < until) {
    std::this_thread::sleep_for(kStep);
    code = commit_once(*list, until);
  }
  count(code == RD_KAFKA_RESP_ERR_NO_ERROR ? ConsumerEvent::kCommitted
                                           : ConsumerEvent::kCommitFailed);
  return status_of(code, "committing");
}

rd_kafka_resp_err_t Consumer::commit_once(const rd_kafka_topic_partition_list_t& list,
                                          Clock::time_point until) {
  // A queue of its own bounds the wait: librdkafka's blocking commit waits for a frozen broker.
  const Ptr<rd_kafka_queue_t> queue(rd_kafka_queue_new(client_.get()));
  const auto code = rd_kafka_commit_queue(client_.get(), &list, queue.get(), nullptr, nullptr);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return code;
  const Ptr<rd_kafka_event_t> event(rd_kafka_queue_poll(queue.get(), to_int_ms(time_left(until))));
  return event ? rd_kafka_event_error(event.get()) : RD_KAFKA_RESP_ERR__TIMED_OUT;
}

}  // namespace fcap::kafka
