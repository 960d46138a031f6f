#include "redis/slot_tags.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "redis/client.h"
#include "redis/cluster_shape.h"

namespace fcap::redis {
namespace {

std::vector<std::string> find_tags() {
  std::vector<std::string> tags(kSlotCount);
  std::size_t missing = tags.size();
  for (std::uint64_t number = 0; missing != 0; ++number) {
    std::string text = std::to_string(number);
    std::string& tag = tags[slot_of(text)];
    if (!tag.empty()) continue;
    tag = std::move(text);
    --missing;
  }
  return tags;
}

}  // namespace

const std::string& tag_of_slot(std::uint16_t slot) {
  static const std::vector<std::string> tags = find_tags();
  return tags[slot];
}

}  // namespace fcap::redis
