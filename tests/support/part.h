#pragma once

#include <cstdint>

#include "kafka/topic_partition.h"

namespace fcap {

/// A partition by its number, of the first topic where no other is named.
constexpr kafka::TopicPartition part(std::int32_t number, std::int32_t topic = 0) {
  return {kafka::TopicIndex{topic}, number};
}

}  // namespace fcap
