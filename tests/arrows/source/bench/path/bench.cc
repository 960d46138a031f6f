// A bench, in a subfolder that needs no room.
#include "path/bench.h"

#include <hiredis/hiredis.h>
#include <librdkafka/rdkafka.h>

#include "kafka/consumer.h"
#include "tls/context.h"
