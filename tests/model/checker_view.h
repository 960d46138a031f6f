#pragma once

// What a Checker takes from `!config` in the models, by the code that libfcap ships. It looks all
// the time, so whatever holds for it holds for one that has looked since the last loss.
#include <cstdint>
#include <optional>
#include <string>

#include <fcap/time.h>

#include "redis/config_watch.h"
#include "updater/pipeline/loss_statement.h"

namespace fcap::updater::testing {

class CheckerView {
 public:
  explicit CheckerView(std::chrono::milliseconds retention) { watch_.expect({"p", retention, {}}); }

  /// Null: there is no record.
  void look(const std::string* record) {
    if (record != nullptr && *record == read_) return;
    read_ = record == nullptr ? std::string() : *record;
    redis::Reply reply;
    if (record != nullptr) reply = {.kind = redis::Reply::Kind::kString, .text = *record};
    watch_.compare_with(reply, 0);
    lost_before_.reset();
    const auto parsed = redis::parse_config(reply.text);
    if (!parsed.ok()) return;
    for (const auto& [topic, partitions] : parsed.value().missing_before) {
      const auto all = partitions.find(std::string(LossStatement::kAllPartitions));
      if (all != partitions.end()) lost_before_ = all->second.before;
    }
  }
  /// What is said of a topic's events after a loss; nothing where there is no record.
  [[nodiscard]] const std::optional<Instant>& lost_before() const noexcept { return lost_before_; }
  /// A count of a user's events since then is taken as complete.
  [[nodiscard]] Instant complete_since(std::uint16_t slot = 0) const {
    for (const redis::MissingEvents& missing : watch_.missing()) {
      if (missing.slots.contains(slot)) return missing.before;
    }
    return {};
  }
  /// Nothing is said to be missing, and the settings are the Checker's.
  [[nodiscard]] bool all_complete() const {
    return watch_.state() == ConfigState::kAgrees && watch_.missing().empty();
  }

 private:
  redis::ConfigWatch watch_;
  std::string read_;
  std::optional<Instant> lost_before_;
};

}  // namespace fcap::updater::testing
