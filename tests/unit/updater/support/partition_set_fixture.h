#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/completed.h"
#include "tests/unit/updater/support/fake_log.h"
#include "tests/unit/updater/support/fault_store.h"
#include "updater/pipeline/partition_set.h"

namespace fcap::updater::testing {

using std::chrono::milliseconds;

/// Partitions over a store in memory, from "p", group "g" and topic "t".
class PartitionSetFixture : public ::testing::Test {
 protected:
  explicit PartitionSetFixture(const MarkOptions& marks = options())
      : set_{store_,   [this] { return epoch_; },
             log_,     marks,
             metrics_, [this](LogLevel, std::string_view text) { said_.emplace_back(text); }} {}

  static std::string key(std::int32_t partition) { return mark_key("p", "g", "t", partition); }
  static MarkOptions options() {
    MarkOptions marks;
    marks.key_prefix = "p";
    marks.group_id = "g";
    marks.topic = "t";
    return marks;
  }

  void set_mark(std::int64_t offset, std::int32_t partition = 0) {
    store_.records()[key(partition)].bytes = encode_mark({.position = offset});
    log_.commits.try_emplace(partition, offset);
  }
  std::string mark(std::int32_t partition = 0) {
    const auto found = store_.records().find(key(partition));
    if (found == store_.records().end()) return "none";
    const auto value = decode_mark(found->second.bytes);
    return value ? std::to_string(value->position) : found->second.bytes;
  }

  // Assigns partition 0 and gives where it begins.
  std::int64_t assign_only() {
    std::vector<PartitionOffset> partitions{{0, PartitionOffset::kNone}};
    set_.assign(partitions);
    return partitions[0].offset;
  }
  // The same, and its mark is confirmed.
  std::int64_t assign() {
    const std::int64_t offset = assign_only();
    confirm();
    return offset;
  }
  // The mark is written, and its answer seen.
  void confirm() {
    tick();
    tick(milliseconds{1});
  }

  void tick(milliseconds later = milliseconds{1000}) {
    now_ += later;
    set_.tick(now_, instant_from_ms(1'700'000'000'000));
  }

  // Enough turns for whatever is going on: an answer, a check, its answer, a write.
  void settle() {
    for (int i = 0; i < 5; ++i) tick();
  }

  Batch::BatchOffsets take(std::int64_t first, std::int64_t end, std::int32_t partition = 0) {
    for (std::int64_t offset = first; offset < end; ++offset) {
      EXPECT_TRUE(set_.take(partition, offset));
    }
    std::vector<Batch::BatchOffsets> ranges;
    set_.seal(ranges);
    EXPECT_EQ(ranges.size(), 1U);
    return ranges.at(0);
  }

  std::vector<std::pair<std::int32_t, std::int64_t>> to_place() {
    std::vector<PartitionOffset> offsets;
    set_.to_place(offsets);
    std::vector<std::pair<std::int32_t, std::int64_t>> all;
    all.reserve(offsets.size());
    for (const PartitionOffset& at : offsets) all.emplace_back(at.partition, at.offset);
    return all;
  }
  using Places = std::vector<std::pair<std::int32_t, std::int64_t>>;

  FaultStore store_;
  FakeLog log_;
  Metrics metrics_;
  std::uint64_t epoch_ = 1;
  std::vector<std::string> said_;
  PartitionSet set_;
  PartitionSet::Clock::time_point now_ = PartitionSet::Clock::now();
};

}  // namespace fcap::updater::testing
