// Replies of a Sentinel and of a server about itself: any bytes are safe, and what is accepted is
// an address that can be connected to.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <fcap/time.h>

#include "redis/replica_list.h"
#include "redis/resp_parser.h"
#include "redis/sentinel_questions.h"
#include "redis/server_facts.h"

namespace {

using fcap::Instant;
using fcap::redis::Address;
using fcap::redis::Reply;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_address(const Address& address) {
  require(!address.host.empty() && address.port != 0);
}

void check_facts(const Reply& reply) {
  fcap::redis::ServerFacts facts;
  facts.take_role(reply);
  facts.take_cluster(reply);
  facts.take_time(reply, Instant{});
  (void)facts.unfit();
  (void)facts.unfit_for_cluster();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fcap::redis::RespParser parser;
  if (parser.parse({reinterpret_cast<const char*>(data), size}) !=
      fcap::redis::RespParser::ParseOutcome::kReply) {
    return 0;
  }
  const Reply& reply = parser.reply();
  check_facts(reply);
  require(!fcap::redis::read_config_epoch(reply) || reply.elements.size() > 1);
  const auto master = fcap::redis::read_master_address(reply, "fcap");
  require(master.ok() || !master.status().text().empty());
  if (master.ok()) require_address(master.value());
  const auto replicas = fcap::redis::read_replica_addresses(reply);
  require(replicas.ok() || !replicas.status().text().empty());
  if (!replicas.ok()) return 0;
  require(replicas.value().size() <= reply.elements.size());
  for (const Address& replica : replicas.value()) require_address(replica);
  return 0;
}
