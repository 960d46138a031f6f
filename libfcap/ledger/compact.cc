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

// Entries at or before this are out of every window's reach.
Instant horizon_of(const CompactOptions& options) noexcept {
  const auto now = to_ms(format::representable(options.trim_now));
  const auto retention = std::clamp(options.retention.count(), std::int64_t{0}, format::kTimeMsMax);
  return instant_from_ms(now - retention);
}

// Frames with unknown tags.
struct UnknownFrames {
  std::vector<std::string_view> frames;
  std::size_t dropped = 0;
};

// In their order, as many of the last ones as fit.
UnknownFrames unknown_frames(std::string_view original, std::size_t bytes_max) {
  UnknownFrames unknown;
  auto& [frames, dropped] = unknown;
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
  dropped = first;
  return unknown;
}

// Whoever reserves gives a reservation at most so long.
constexpr std::chrono::hours kReservedAtMost{24};
// By how much the clocks of those who reserve and release may differ.
constexpr std::chrono::minutes kClocksDiffer{5};

// A released reservation is remembered until every copy of it that can still arrive has expired.
// Forgotten earlier, a late copy would count again.
bool can_go(const Reservation& reservation, Instant now) noexcept {
  const Instant until =
      reservation.released
          ? std::max(reservation.expires, reservation.event.time + kReservedAtMost) + kClocksDiffer
          : reservation.expires;
  return until <= now;
}

// Appends the reservations that are not over, in their order. If they do not all fit, those that
// expire last are kept.
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

// One compaction, step by step.
class Compaction {
 public:
  Compaction(const Ledger& ledger, std::string_view original, const CompactOptions& options)
      : ledger_(ledger),
        original_(original),
        options_(options),
        bytes_max_(std::max(options.record_bytes_max, kRecordBytesFloor)),
        horizon_(horizon_of(options)),
        now_(format::representable(options.trim_now)) {}

  Compacted run() {
    encode_entries();
    append_markers(unknown_frames(original_, bytes_max_ / 4).frames.empty());
    result_.record += runs_;
    // No entry goes for a reservation, so these get what is left.
    append_reservations(ledger_, now_, bytes_max_ - result_.record.size(), result_);
    const UnknownFrames unknown =
        unknown_frames(original_, std::min(bytes_max_ / 4, bytes_max_ - result_.record.size()));
    result_.dropped_frames += unknown.dropped;
    for (const std::string_view frame : unknown.frames) result_.record.append(frame);
    return std::move(result_);
  }

 private:
  void encode_entries() {
    // Copies are made only where something has to go.
    Ledger trimmed;
    const Ledger* kept = &ledger_;
    if (has_expired(ledger_, horizon_)) {
      trimmed = ledger_;
      drop_expired(trimmed, horizon_);
      result_.expired_entries = ledger_.size() - trimmed.size();
      kept = &trimmed;
    }
    format::append_runs(*kept, runs_);
    // Entries that were dropped for size, and would be out of every window's reach by now, change
    // no answer.
    complete_since_ = ledger_.complete_since();
    if (complete_since_ && *complete_since_ <= horizon_ + milliseconds{1}) complete_since_.reset();
    const std::size_t room = bytes_max_ - (ledger_.erased_before() ? format::kMarkerFrameBytes : 0);
    if (runs_.size() + (complete_since_ ? format::kMarkerFrameBytes : 0) <= room) return;
    SizeTrim trim(*kept, options_.keep);
    const auto keep = trim.first(trim.fitting(room - format::kMarkerFrameBytes));
    const Instant since = newest_dropped(*kept, keep) + milliseconds{1};
    complete_since_ = complete_since_ ? std::max(*complete_since_, since) : since;
    Ledger fitting = *kept;
    fitting.retain(keep);
    result_.dropped_entries = kept->size() - fitting.size();
    runs_.clear();
    format::append_runs(fitting, runs_);
  }

  void append_markers(bool nothing_unknown) {
    const std::optional<Instant> erased_before = ledger_.erased_before();
    const bool reserved =
        std::any_of(ledger_.reservations().begin(), ledger_.reservations().end(),
                    [this](const Reservation& reservation) { return !can_go(reservation, now_); });
    // An erasure stays as long as anything does, and as long as what it erased could come back.
    const bool nothing_else = runs_.empty() && nothing_unknown && !reserved && !complete_since_;
    if (erased_before && !(nothing_else && *erased_before <= horizon_)) {
      format::append_marker(format::Tag::kErasedBefore, *erased_before, result_.record);
    }
    if (complete_since_) {
      format::append_marker(format::Tag::kCompleteSince, *complete_since_, result_.record);
    }
  }

  const Ledger& ledger_;
  const std::string_view original_;
  const CompactOptions& options_;
  const std::size_t bytes_max_;
  const Instant horizon_;
  const Instant now_;
  Compacted result_;
  std::string runs_;
  std::optional<Instant> complete_since_;
};

}  // namespace

Compacted compact(const Ledger& ledger, std::string_view original, const CompactOptions& options) {
  return Compaction(ledger, original, options).run();
}

}  // namespace fcap::ledger
