#include "cli/simulate/impression_log.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "ledger/ids.h"

namespace fcap::cli {
namespace {

bool earlier(const LogRow& a, const LogRow& b) noexcept {
  return a.time() < b.time();
}

auto identity(const LogRow& row) noexcept {
  return std::tuple(row.campaign, row.kind(), row.fingerprint);
}

}  // namespace

bool ImpressionLog::is_nobody(std::string_view user) const noexcept {
  return user.empty() ||
         std::find(null_user_ids_.begin(), null_user_ids_.end(), user) != null_user_ids_.end();
}

void ImpressionLog::add(const events::Event& event) {
  const bool erasure = event.kind == events::Event::Kind::kErasure;
  if (is_nobody(event.user_id)) {
    if (!erasure && event.type == EventType::kImpression) ++without_user_count_;
    return;
  }
  const LogRow::Kind kind =
      erasure ? LogRow::Kind::kErasure : static_cast<LogRow::Kind>(event.type);
  LogRow row;
  row.time_and_kind =
      static_cast<std::uint64_t>(to_ms(event.time)) << 3U | static_cast<std::uint64_t>(kind);
  if (!erasure) {
    row.campaign = campaigns_.number_of(event.campaign_id);
    row.creative = creatives_.number_of(event.creative_id);
  }
  if (event.event_id.empty()) {
    row.fingerprint = next_sequence_++;
  } else {
    row.fingerprint = ledger::fingerprint(event.event_id);
    has_event_ids_ = true;
  }
  add_user(event.user_id);
  rows_.push_back(row);
}

// Notes whose the next row is.
void ImpressionLog::add_user(std::string_view user) {
  const std::size_t row = rows_.size();
  if (row == numbered_rows_ + kUsersAhead) number_user();
  WaitingUser& added = waiting_users_[row % kUsersAhead];
  added.id.assign(user);
  added.hash = Interner::hash_of(user);
  users_.fetch_slot(added.hash);
  constexpr std::size_t kHalf = kUsersAhead / 2;
  if (row >= numbered_rows_ + kHalf) {
    users_.fetch_name(waiting_users_[(row - kHalf) % kUsersAhead].hash);
  }
}

// Gives its number to the first user who waits.
void ImpressionLog::number_user() {
  const WaitingUser& user = waiting_users_[numbered_rows_ % kUsersAhead];
  rows_[numbered_rows_++].user = users_.number_of(user.id, user.hash);
}

// A counting sort: stable, and without a comparison.
void ImpressionLog::group_by_user() {
  begins_.assign(users_.size() + 1, 0);
  for (const LogRow& row : rows_) ++begins_[row.user + 1];
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::vector<LogRow> grouped(rows_.size());
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  for (const LogRow& row : rows_) grouped[next[row.user]++] = row;
  rows_.swap(grouped);
}

void ImpressionLog::leave_out_copies(std::span<const LogRow> of_user,
                                     std::vector<std::uint32_t>& order,
                                     std::vector<bool>& is_copy) const {
  order.resize(of_user.size());
  std::iota(order.begin(), order.end(), 0U);
  // The latest of each identity comes first.
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(identity(of_user[a]), b) < std::tuple(identity(of_user[b]), a);
  });
  is_copy.assign(of_user.size(), false);
  for (std::size_t i = 1; i < order.size(); ++i) {
    is_copy[order[i]] = identity(of_user[order[i]]) == identity(of_user[order[i - 1]]);
  }
}

void ImpressionLog::put_in_order() {
  while (numbered_rows_ < rows_.size()) number_user();
  group_by_user();
  std::vector<std::uint32_t> order;
  std::vector<bool> is_copy;
  std::size_t kept = 0;
  for (std::size_t user = 0; user < user_count(); ++user) {
    const std::size_t count = begins_[user + 1] - begins_[user];
    const std::span<LogRow> of_user = std::span(rows_).subspan(begins_[user], count);
    if (!std::is_sorted(of_user.begin(), of_user.end(), earlier)) {
      std::stable_sort(of_user.begin(), of_user.end(), earlier);
    }
    if (has_event_ids_) leave_out_copies(of_user, order, is_copy);
    begins_[user] = kept;
    for (std::size_t i = 0; i < count; ++i) {
      if (!has_event_ids_ || !is_copy[i]) rows_[kept++] = of_user[i];
    }
  }
  repeated_count_ = rows_.size() - kept;
  rows_.resize(kept);
  begins_.back() = kept;
}

}  // namespace fcap::cli
