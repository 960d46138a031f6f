#pragma once

#include "updater/pipeline/partition_set.h"

namespace fcap::updater::testing {

/// All of the range has been written, and every write of it was acknowledged.
inline void complete(PartitionSet& partitions, const Batch::BatchOffsets& range) {
  struct Unheard final : RoundListener {
    void round_over(Batch& /*batch*/) noexcept override {}
  } unheard;
  Batch batch(unheard);
  batch.ranges = {range};
  partitions.complete_batch(batch);
}

}  // namespace fcap::updater::testing
