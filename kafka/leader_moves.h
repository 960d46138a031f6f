#pragma once

#include <chrono>
#include <functional>

#include <librdkafka/rdkafka.h>

namespace fcap::kafka {

/// Asks a question that only the leaders of partitions can answer. While the answer is that the
/// leader is another broker by now, or that there is none for the moment, it is asked again, until
/// `timeout` is over: a topic that was just created, or a broker that was restarted, answers so for
/// a second or two. `ask` gets the time that is left. Gives the last answer.
rd_kafka_resp_err_t ask_leaders(
    std::chrono::milliseconds timeout,
    const std::function<rd_kafka_resp_err_t(std::chrono::milliseconds left)>& ask);

}  // namespace fcap::kafka
