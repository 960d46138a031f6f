#include <algorithm>
#include <numeric>
#include <tuple>

#include "ledger/encode.h"
#include "ledger/encode_runs.h"
#include "ledger/format.h"

namespace fcap::ledger {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kRecordBytesFloor = 64;
constexpr std::size_t kFoldedFrameBytes = 2 + format::kFoldedPayloadBytes;

// Entries at or before this are out of every window's reach.
Instant horizon_of(const CompactOptions& options) noexcept {
  const auto now = to_ms(format::representable(options.trim_now));
  const auto retention = std::clamp(options.retention.count(), std::int64_t{0}, format::kTimeMsMax);
  return instant_from_ms(now - retention);
}

// The unknown frames in their order, as many of the last ones as fit.
std::vector<std::string_view> unknown_frames(std::string_view original, std::size_t bytes_max,
                                             std::size_t& dropped) {
  std::vector<std::string_view> frames;
  std::size_t bytes = 0;
  format::FrameReader reader(original);
  format::Frame frame;
  while (reader.next(frame)) {
    if (format::is_known(frame.tag)) continue;
    frames.push_back(frame.bytes);
    bytes += frame.bytes.size();
  }
  std::size_t first = 0;
  while (bytes > bytes_max) bytes -= frames[first++].size();
  frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(first));
  dropped += first;
  return frames;
}

// Whoever reserves gives a reservation at most so long.
constexpr std::chrono::hours kReservedAtMost{24};
// By how much the clocks of those who reserve and release may differ.
constexpr std::chrono::minutes kClocksDiffer{5};

// A released one is remembered until every copy that can still arrive has expired.
bool can_go(const Reservation& reservation, Instant now) noexcept {
  const Instant until =
      reservation.released
          ? std::max(reservation.expires, reservation.event.time + kReservedAtMost) + kClocksDiffer
          : reservation.expires;
  return until <= now;
}

// Appends the reservations that are not over, in their order: of those that do not fit all, the
// ones that expire last.
void append_reservations(const Ledger& ledger, Instant now, std::size_t bytes_max,
                         Compacted& result) {
  std::vector<const Reservation*> live;
  for (const Reservation& reservation : ledger.reservations()) {
    if (!can_go(reservation, now)) live.push_back(&reservation);
  }
  std::stable_sort(live.begin(), live.end(), [](const Reservation* a, const Reservation* b) {
    return a->expires > b->expires;
  });
  std::size_t bytes = 0;
  std::size_t fitting = 0;
  while (fitting < live.size() && bytes + format::frame_bytes(*live[fitting]) <= bytes_max) {
    bytes += format::frame_bytes(*live[fitting++]);
  }
  result.dropped_frames += live.size() - fitting;
  live.resize(fitting);
  std::sort(live.begin(), live.end());
  for (const Reservation* reservation : live) {
    append_reservation(*reservation, result.record);
  }
}

// Finds the entries that stay when not all fit. Its order of preference is a total one, so that
// the outcome does not depend on how the ledger came about.
class SizeTrim {
 public:
  SizeTrim(const Ledger& ledger, const KeepPolicy* policy) : ledger_(ledger) {
    rank_by_preference(policy);
    number_creatives();
  }

  // The largest number of preferred entries whose frame fits.
  [[nodiscard]] std::size_t fitting(std::size_t frame_bytes_max) {
    std::size_t fits = 0;
    std::size_t too_many = ledger_.size() + 1;
    while (fits + 1 < too_many) {
      const std::size_t middle = fits + (too_many - fits) / 2;
      (frame_bytes(middle) <= frame_bytes_max ? fits : too_many) = middle;
    }
    return fits;
  }

  [[nodiscard]] std::vector<bool> first(std::size_t count) const {
    std::vector<bool> keep(ledger_.size());
    for (std::size_t i = 0; i < keep.size(); ++i) keep[i] = rank_[i] < count;
    return keep;
  }

 private:
  void rank_by_preference(const KeepPolicy* policy) {
    std::vector<bool> marked(ledger_.size());
    if (policy != nullptr) policy->mark_needed(ledger_, marked);
    std::vector<std::uint32_t> order(ledger_.size());
    std::iota(order.begin(), order.end(), 0U);
    // Indices ascend by (campaign, type), so they settle what times leave open.
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(!marked[a], ledger_.times()[b], a) <
             std::tuple(!marked[b], ledger_.times()[a], b);
    });
    rank_.resize(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) rank_[order[i]] = i;
  }

  // A creative costs its hash once, with the most preferred entry that has it.
  void number_creatives() {
    std::vector<std::tuple<std::uint64_t, std::uint32_t>> by_creative;
    for (std::size_t i = 0; i < ledger_.size(); ++i) {
      if (ledger_.creatives()[i] != 0) by_creative.emplace_back(ledger_.creatives()[i], rank_[i]);
    }
    std::sort(by_creative.begin(), by_creative.end());
    std::uint64_t previous = 0;
    for (const auto& [creative, rank] : by_creative) {
      if (creative != previous) creative_ranks_.push_back(rank);
      previous = creative;
    }
    std::sort(creative_ranks_.begin(), creative_ranks_.end());
  }

  [[nodiscard]] std::size_t frame_bytes(std::size_t count) const {
    format::RunsShape shape;
    for (const Run& run : ledger_.runs()) {
      std::uint64_t length = 0;
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        if (rank_[i] >= count) continue;
        ++length;
        shape.add_time(ledger_.times()[i]);
      }
      if (length > 0) shape.add_run(run.type, length);
    }
    shape.creatives = static_cast<std::size_t>(
        std::lower_bound(creative_ranks_.begin(), creative_ranks_.end(), count) -
        creative_ranks_.begin());
    return shape.frame_bytes();
  }

  const Ledger& ledger_;
  std::vector<std::uint32_t> rank_;            // per entry: how many are preferred to it
  std::vector<std::uint32_t> creative_ranks_;  // ascending
};

Instant newest_dropped(const Ledger& ledger, const std::vector<bool>& keep) noexcept {
  Instant newest = Instant::min();
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (!keep[i]) newest = std::max(newest, ledger.times()[i]);
  }
  return newest;
}

void drop_expired(Ledger& ledger, Instant horizon) {
  std::vector<bool> keep(ledger.size());
  for (std::size_t i = 0; i < keep.size(); ++i) keep[i] = ledger.times()[i] > horizon;
  ledger.retain(keep);
}

bool has_expired(const Ledger& ledger, Instant horizon) noexcept {
  return std::any_of(ledger.runs().begin(), ledger.runs().end(),
                     [&](const Run& run) { return ledger.times()[run.begin] <= horizon; });
}

}  // namespace

Compacted compact(const Ledger& ledger, std::string_view original, const CompactOptions& options) {
  Compacted result;
  const Instant horizon = horizon_of(options);
  const std::size_t record_bytes_max = std::max(options.record_bytes_max, kRecordBytesFloor);
  const Instant now = format::representable(options.trim_now);
  std::string folded;
  for (const FoldedCount& count : ledger.folded_counts()) {
    format::append_folded_count(count, folded);
  }
  const std::size_t frames_max = record_bytes_max - 2 * format::kMarkerFrameBytes;
  folded.resize(std::min(folded.size(), frames_max / kFoldedFrameBytes * kFoldedFrameBytes));
  result.dropped_frames = ledger.folded_counts().size() - folded.size() / kFoldedFrameBytes;
  const auto unknown = unknown_frames(original, frames_max - folded.size(), result.dropped_frames);
  std::size_t unknown_bytes = folded.size();
  for (const std::string_view frame : unknown) unknown_bytes += frame.size();

  // Copies are made only where something has to go.
  Ledger trimmed;
  const Ledger* kept = &ledger;
  if (has_expired(ledger, horizon)) {
    trimmed = ledger;
    drop_expired(trimmed, horizon);
    result.expired_entries = ledger.size() - trimmed.size();
    kept = &trimmed;
  }

  std::string runs;
  format::append_runs(*kept, runs);
  // A drop that is out of reach by now changes no answer.
  std::optional<Instant> complete_since = ledger.complete_since();
  if (complete_since && *complete_since <= horizon + milliseconds{1}) complete_since.reset();
  const std::optional<Instant> erased_before = ledger.erased_before();
  const std::size_t room =
      record_bytes_max - unknown_bytes - (erased_before ? format::kMarkerFrameBytes : 0);
  if (runs.size() + (complete_since ? format::kMarkerFrameBytes : 0) > room) {
    SizeTrim trim(*kept, options.keep);
    const auto keep = trim.first(trim.fitting(room - format::kMarkerFrameBytes));
    const Instant since = newest_dropped(*kept, keep) + milliseconds{1};
    complete_since = complete_since ? std::max(*complete_since, since) : since;
    Ledger fitting = *kept;
    fitting.retain(keep);
    result.dropped_entries = kept->size() - fitting.size();
    runs.clear();
    format::append_runs(fitting, runs);
  }

  // An erasure stays as long as anything does, and as long as what it erased could come back.
  const bool reserved =
      std::any_of(ledger.reservations().begin(), ledger.reservations().end(),
                  [now](const Reservation& reservation) { return !can_go(reservation, now); });
  const bool nothing_else =
      runs.empty() && unknown.empty() && folded.empty() && !reserved && !complete_since;
  if (erased_before && !(nothing_else && *erased_before <= horizon)) {
    format::append_marker(format::Tag::kErasedBefore, *erased_before, result.record);
  }
  if (complete_since) {
    format::append_marker(format::Tag::kCompleteSince, *complete_since, result.record);
  }
  result.record += runs;
  result.record += folded;
  // No entry goes for a reservation, so these get what is left.
  const std::size_t to_come = unknown_bytes - folded.size();
  append_reservations(ledger, now, record_bytes_max - result.record.size() - to_come, result);
  for (const std::string_view frame : unknown) result.record.append(frame);
  return result;
}

}  // namespace fcap::ledger
