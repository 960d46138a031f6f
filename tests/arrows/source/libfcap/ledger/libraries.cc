// What the ledger may not use, and calls of it.
// clang-format off
#include <librdkafka/rdkafka.h>
#include <postgresql/libpq-fe.h>
#include <libpq-fe.h>
#include <openssl/hmac.h>
#include <hiredis/hiredis.h>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <sys/socket.h>

void calls() {
  rd_kafka_new(RD_KAFKA_CONSUMER, nullptr, nullptr, 0);
  PQconnectdb("");
  EVP_MAC_init(nullptr, nullptr, 0, nullptr);
  HMAC(nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr);
  SSL_new(nullptr);
}
