#pragma once

#include <chrono>
#include <functional>

#include <librdkafka/rdkafka.h>

namespace fcap::kafka {

/// Asks a question that only the leaders of partitions can answer. A topic that was just created,
/// or a broker that was restarted, answers for a second or two that it does not lead the partition,
/// or that nobody does. The question is then asked again, until `timeout` is over. `ask` gets the
/// time that is left. Returns the last answer.
rd_kafka_resp_err_t ask_leaders(
    std::chrono::milliseconds timeout,
    const std::function<rd_kafka_resp_err_t(std::chrono::milliseconds left)>& ask);

}  // namespace fcap::kafka
