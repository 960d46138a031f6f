#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/time.h>

#include "cli/simulate/interner.h"
#include "events/event.h"

namespace fcap::cli {

/// One event of a log. Users, campaigns and creatives are numbers given by the log.
struct LogRow {
  enum class Kind : std::uint8_t { kImpression, kClick, kViewable, kConversion, kErasure };

  std::uint64_t time_and_kind = 0;
  std::uint32_t user = 0;
  std::uint32_t campaign = 0;
  std::uint32_t creative = 0;
  std::uint32_t fingerprint = 0;

  [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>(time_and_kind & 7U); }
  [[nodiscard]] Instant time() const noexcept {
    return instant_from_ms(static_cast<std::int64_t>(time_and_kind >> 3U));
  }
};

/// An event log in memory, 24 bytes per event (twice that while it is being put in order).
class ImpressionLog {
 public:
  /// `null_user_ids` stand for "unknown": their events are only counted, as by the live path.
  explicit ImpressionLog(std::vector<std::string> null_user_ids)
      : null_user_ids_(std::move(null_user_ids)) {}

  /// An event without an event_id is one of its own. Its time is between 1970 and the year 10889.
  void add(const events::Event& event);

  /// Groups the events by user, each user's by time (of equal times, by their order in the log),
  /// and leaves the later of two copies of one event. Call once, after the last add().
  void put_in_order();

  [[nodiscard]] std::size_t user_count() const noexcept {
    return begins_.empty() ? 0 : begins_.size() - 1;
  }
  [[nodiscard]] std::span<const LogRow> events_of(std::size_t user) const noexcept {
    return std::span(rows_).subspan(begins_[user], begins_[user + 1] - begins_[user]);
  }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  [[nodiscard]] const Interner& users() const noexcept { return users_; }
  [[nodiscard]] const Interner& campaigns() const noexcept { return campaigns_; }
  [[nodiscard]] const Interner& creatives() const noexcept { return creatives_; }

  /// Copies of events that were there already.
  [[nodiscard]] std::size_t repeated_count() const noexcept { return repeated_count_; }
  /// Impressions without a user, which are never capped; they are not among the events.
  [[nodiscard]] std::size_t without_user_count() const noexcept { return without_user_count_; }
  /// Whether clicks and the like can be matched with the impressions that they came from.
  [[nodiscard]] bool has_event_ids() const noexcept { return has_event_ids_; }

 private:
  [[nodiscard]] bool is_nobody(std::string_view user) const noexcept;
  void add_user(std::string_view user);
  void number_user();
  void group_by_user();
  void leave_out_copies(std::span<const LogRow> of_user, std::vector<std::uint32_t>& order,
                        std::vector<bool>& is_copy) const;

  std::vector<std::string> null_user_ids_;
  /// Users of the last rows, which still wait for their numbers: known users lie all over memory,
  /// and what is asked for early is there when it is needed.
  static constexpr std::size_t kUsersAhead = 16;
  struct WaitingUser {
    std::string id;
    Interner::Hash hash = 0;
  };
  std::array<WaitingUser, kUsersAhead> waiting_users_;  // by row, in a ring
  std::size_t numbered_rows_ = 0;
  Interner users_;
  Interner campaigns_;
  Interner creatives_;
  std::vector<LogRow> rows_;
  std::vector<std::size_t> begins_;
  std::size_t repeated_count_ = 0;
  std::size_t without_user_count_ = 0;
  std::uint32_t next_sequence_ = 0;
  bool has_event_ids_ = false;
};

}  // namespace fcap::cli
