#pragma once

#include <chrono>
#include <string>

#include <fcap/status.h>

#include "kafka/conf.h"

namespace fcap::kafka {

/// Whether this account may write to an existing topic, without writing to it: a message is sent
/// that asks for two acknowledgements, a number that brokers since Kafka 0.9 refuse. They look at
/// the account's rights first, so that the reason of the refusal tells.
///
///     Status status = try_writing(connection, "impressions.dead", 5s);
///
/// Ok: it may. Otherwise the broker's words.
[[nodiscard]] Status try_writing(const ConnectionOptions& connection, const std::string& topic,
                                 std::chrono::milliseconds answer_within);

}  // namespace fcap::kafka
