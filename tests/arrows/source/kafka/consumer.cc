// The room of librdkafka.
#include <librdkafka/rdkafka.h>

#include "updater/watch/watch.h"

void consumer() {
  rd_kafka_new(RD_KAFKA_CONSUMER, nullptr, nullptr, 0);
}
