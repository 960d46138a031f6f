// Replies to CLUSTER SLOTS and CLUSTER INFO: any bytes are safe, and a shape that is accepted can
// be acted on.
#include <bitset>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "redis/believed_shape.h"
#include "redis/resp_parser.h"
#include "redis/slot_map.h"

namespace {

using fcap::redis::ClusterShape;
using fcap::redis::kSlotCount;

void check(const ClusterShape& shape) {
  std::bitset<kSlotCount> owned;
  std::set<std::string> addresses;
  for (const ClusterShape::Shard& shard : shape.shards) {
    if (shard.master.id.empty() || shard.slots.empty()) std::abort();
    if (!addresses.insert(shard.master.address.text).second) std::abort();
    for (const auto& range : shard.slots) {
      if (range.first > range.last || range.last >= kSlotCount) std::abort();
      for (std::size_t slot = range.first; slot <= range.last; ++slot) {
        if (owned[slot]) std::abort();
        owned.set(slot);
      }
    }
  }
  fcap::redis::NodeTable nodes;
  fcap::redis::SlotMap map;
  const auto changed = map.replace(shape, nodes);
  if (!changed.ok() || changed.value() != owned.count()) std::abort();
  for (std::uint16_t slot = 0; slot < kSlotCount; ++slot) {
    if ((map.node_of(slot) != fcap::redis::SlotMap::kNone) != owned[slot]) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fcap::redis::ClusterView view;
  // An error leaves the view as it is.
  (void)read_cluster_info({fcap::redis::Reply::Kind::kString, 0, bytes, {}}, view);
  fcap::redis::RespParser parser;
  if (parser.parse(bytes) != fcap::redis::RespParser::ParseOutcome::kReply) return 0;
  const auto shape = fcap::redis::read_cluster_slots(parser.reply(), "seed");
  if (shape.ok()) {
    check(shape.value());
  } else if (shape.status().text().empty()) {
    std::abort();
  }
  return 0;
}
