#pragma once

#include <string>
#include <string_view>

#include <fcap/status.h>

#include "cli/cli_settings.h"
#include "kafka/conf.h"

namespace fcap::cli {

/// How these settings reach Kafka, the properties read and each looked at; connects to nobody.
/// `client_id` is what the brokers' logs call this client, unless a property says otherwise.
/// Fails on a property that librdkafka does not know or whose value it does not take, on one that
/// has an option of its own, on a secret on the command line, and on a file that cannot be read.
Result<kafka::ConnectionOptions> kafka_connection(const TopicSettings& settings,
                                                  std::string client_id);

/// A failure that Kafka answered or caused, with the options to look at; any other status as it is.
/// `brokers_option` names the option that says where Kafka is.
Status with_kafka_options(const Status& status, std::string_view brokers_option = "--brokers");

}  // namespace fcap::cli
