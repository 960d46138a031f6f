// Includes what its room may not know, for the test of cmake/CheckArrows.cmake. Never compiled.
#include <librdkafka/rdkafka.h>

#include "redis/client.h"

void* consumer() {
  return rd_kafka_new(RD_KAFKA_CONSUMER, nullptr, nullptr, 0);
}
