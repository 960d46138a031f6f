// These functions are about marks that speak for the users of some slots only. On a single server
// they have nothing to do; ClusterPartitionSet overrides them.
#include "updater/pipeline/partition_set.h"

namespace fcap::updater {

void PartitionSet::count_segment(GapPiece& /*segment*/, const Batch& /*batch*/) {}

bool PartitionSet::gives_up(std::uint16_t /*slot*/) const {
  return false;
}

std::uint64_t PartitionSet::send_stamp(std::int32_t /*id*/) const {
  return 0;
}

bool PartitionSet::take_other_look(const LogLooks::LookAnswer& /*answer*/) {
  return false;
}

}  // namespace fcap::updater
