#include "kafka/lone_consumer.h"

#include <utility>

#include <fmt/format.h>

namespace fcap::kafka {

Result<LoneConsumer> make_lone_consumer(Connection connection, const std::string& group_id,
                                        const Properties& defaults) {
  const Properties fixed = {
      {"group.id", group_id},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"enable.partition.eof", "true"},
      {"auto.offset.reset", "error"},
  };
  // These properties are meant for the consumer in the group. This client joins no group.
  for (const char* own : {"auto.offset.reset", "group.instance.id"}) {
    connection.properties.erase(own);
  }
  auto conf = make_conf(connection, defaults, fixed);
  if (!conf.ok()) return conf.status();
  rd_kafka_conf_set_log_cb(conf.value().get(),
                           [](const rd_kafka_t*, int, const char*, const char*) {});
  char text[512] = {};
  LoneConsumer consumer(rd_kafka_new(RD_KAFKA_CONSUMER, conf.value().get(), text, sizeof text));
  if (!consumer) {
    return Status::error(StatusCode::kInvalidArgument, fmt::format("kafka consumer: {}", text));
  }
  (void)conf.value().release();  // the consumer owns it now
  rd_kafka_poll_set_consumer(consumer.get());
  return consumer;
}

}  // namespace fcap::kafka
