#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/completed.h"
#include "tests/unit/updater/support/fake_log.h"
#include "tests/unit/updater/support/fake_looks.h"
#include "tests/unit/updater/support/fault_store.h"
#include "tests/unit/updater/support/news_of.h"
#include "tests/unit/updater/support/scripted_cluster.h"
#include "updater/pipeline/partition_set.h"

namespace fcap::updater::testing {

using std::chrono::milliseconds;

/// Partitions over a cluster of two masters, whose answers the test makes, from "p", group "g" and
/// topic "t".
class ShardRecoveryFixture : public ::testing::Test {
 protected:
  ShardRecoveryFixture() {
    looks_.high = 2'000'000;
    set_.set_log_looks(&looks_);
  }

  static MarkOptions options() {
    MarkOptions marks;
    marks.key_prefix = "p";
    marks.group_id = "g";
    marks.topic = "t";
    marks.log_interval_min = milliseconds{1};
    return marks;
  }

  // Turns until something holds.
  template <typename Holds>
  void turn_until(Holds&& holds) {
    EXPECT_TRUE(redis::eventually([&] {
      now_ += step_;
      set_.tick(now_, instant_from_ms(1'700'000'000'000));
      return holds();
    })) << set_.trouble();
  }
  // Takes partition 0 over, which is then read from the committed offset on.
  void begin(std::int64_t committed, std::int64_t retention_start) {
    log_.start = retention_start;
    log_.commits[0] = committed;
    std::vector<PartitionOffset> at{{0, PartitionOffset::kNone}};
    set_.assign(at);
    EXPECT_EQ(at[0].offset, committed);
    wait_until_read();
  }
  void wait_until_read() {
    turn_until([this] { return !set_.checking(); });
    std::vector<PartitionOffset> to_place;
    set_.to_place(to_place);
    for (const PartitionOffset& at : to_place) set_.placed(at.partition);
  }
  // Messages arrive, and everything in them is done.
  void read(std::int64_t first, std::int64_t end) {
    for (std::int64_t offset = first; offset < end; ++offset) {
      const std::string payload = looks_.payload(offset);
      ASSERT_TRUE(set_.take(0, Delivered{offset, 1000 + offset, {}, payload}));
      if (offset + 1 < end) continue;
      std::vector<Batch::BatchOffsets> ranges;
      set_.seal(ranges);
      for (const Batch::BatchOffsets& range : ranges) complete(set_, range);
    }
  }
  // Everything that is missing is read again.
  void fill_all() {
    std::vector<GapPiece> pieces;
    for (set_.recovery().list_pieces(pieces); !pieces.empty();
         set_.recovery().list_pieces(pieces)) {
      for (const GapPiece& piece : pieces) (void)set_.recovery().piece_done(piece);
    }
  }
  // Until the marks say everything, so that whoever finds them finds no loss.
  void wait_for_marks() {
    turn_until(
        [this] { return set_.recovery().settled() && !set_.checking() && marks_are_safe(); });
  }
  // Until they have been well for so long that they are not away at once when they are lost.
  void wait_until_shards_are_waited_for() {
    const milliseconds step = std::exchange(step_, milliseconds{100});
    turn_for(std::chrono::seconds{20});
    step_ = step;
  }
  void turn_for(std::chrono::seconds length) {
    const auto end = now_ + length;
    turn_until([&] { return now_ >= end; });
  }
  // Reads a log whose topic is recreated then, without commits, until that is noticed.
  void read_until_the_log_is_another() {
    begin(1'000'000, 1'000'000);
    read(1'000'000, 1'000'010);
    wait_for_marks();
    looks_.name = "new";
    log_.start = 0;
    log_.commits.clear();
    set_.suspect_logs();
    turn_until([this] { return was_said("this is no longer the log that was read"); });
  }
  [[nodiscard]] bool marks_are_safe() const {
    return all_marks([](const MarkValue& mark) { return mark.shard->arrivals_safe; });
  }
  // Whether each node has some, and this is true of every one.
  template <typename Holds>
  [[nodiscard]] bool all_marks(Holds&& holds) const {
    for (int node = 0; node < ScriptedCluster::kNodes; ++node) {
      const auto records = cluster_.records(node);
      if (records.empty()) return false;
      for (const auto& [key, text] : records) {
        if (!holds(*decode_mark(text))) return false;
      }
    }
    return true;
  }
  // nullopt: there is no gap.
  [[nodiscard]] std::vector<std::optional<std::int64_t>> gap_ends() const {
    std::vector<GapEnd> listed;
    set_.recovery().list_gap_ends(listed);
    std::vector<std::optional<std::int64_t>> ends;
    ends.reserve(listed.size());
    for (const GapEnd& end : listed) ends.push_back(end.to);
    return ends;
  }
  // Whose events may be missing; nullopt: nothing is said of that.
  [[nodiscard]] std::optional<SlotSet> lacking() const {
    std::vector<GapEnd> listed;
    set_.recovery().list_gap_ends(listed);
    if (listed.empty() || !listed[0].to) return std::nullopt;
    return listed[0].slots;
  }
  [[nodiscard]] bool is_in_trouble(int node) const {
    return set_.trouble().find(cluster_.address(node)) != std::string::npos;
  }
  [[nodiscard]] PartitionSet::Clock::time_point compared() { return news_of(set_).compared.at(0); }
  [[nodiscard]] bool was_said(std::string_view text) const {
    return std::ranges::any_of(
        said_, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  ScriptedCluster cluster_;
  FaultStore store_;
  FakeLog log_;
  FakeLooks looks_;
  Metrics metrics_;
  std::vector<std::string> said_;
  PartitionSet set_{store_,
                    [] { return std::uint64_t{1}; },
                    log_,
                    options(),
                    metrics_,
                    [this](LogLevel, std::string_view text) { said_.emplace_back(text); },
                    std::make_shared<ClientShards>(cluster_.connect())};
  PartitionSet::Clock::time_point now_ = PartitionSet::Clock::now();
  // How long a turn takes: about as long as a real one, or a shard that is well would seem to be
  // away.
  milliseconds step_{2};
};

}  // namespace fcap::updater::testing
