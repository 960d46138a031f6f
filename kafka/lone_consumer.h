#pragma once

#include <memory>
#include <string>

#include <librdkafka/rdkafka.h>

#include <fcap/status.h>

#include "kafka/conf.h"

namespace fcap::kafka {

struct DestroyLoneConsumer {
  /// Without leaving a group, because it is in none. librdkafka 2.0.2 may wait forever for the
  /// threads of a topic that was deleted.
  void operator()(rd_kafka_t* handle) const noexcept {
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  }
};

/// A consumer that joins no group: it is assigned what it reads, commits nothing, and causes no
/// rebalance. It says nothing itself: the reader of the same topic reports what there is to report.
using LoneConsumer = std::unique_ptr<rd_kafka_t, DestroyLoneConsumer>;

/// Ends of partitions and offsets that do not exist come as errors of messages. `group_id` is not
/// joined; an account may have rights for no other one. `defaults` yield to the user's properties.
Result<LoneConsumer> make_lone_consumer(Connection connection, const std::string& group_id,
                                        const Properties& defaults);

}  // namespace fcap::kafka
