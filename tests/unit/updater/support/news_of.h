#pragma once

#include "updater/pipeline/partition_set.h"

namespace fcap::updater::testing {

/// What the partitions' marks tell; what is gone is told once.
inline MarkNews news_of(PartitionSet& partitions) {
  MarkNews news;
  partitions.recovery().tell_marks(news);
  return news;
}

}  // namespace fcap::updater::testing
