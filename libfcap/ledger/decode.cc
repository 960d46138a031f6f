#include <algorithm>
#include <tuple>

#include "ledger/format.h"
#include "ledger/ledger.h"

namespace fcap::ledger {
namespace {

// What a runs frame says before its columns, and where those are.
struct RunsLayout {
  std::uint8_t flags = 0;
  std::size_t time_bytes = 0;
  std::int64_t base_ms = 0;
  std::uint32_t runs = 0;
  const char* lengths = nullptr;  // nibbles
  const char* types = nullptr;    // two bits each, when mixed
  const char* escapes = nullptr;  // varints of the long runs, then the columns
  const char* end = nullptr;
};

// Whether the last byte of a column of `count` values has bits set behind the last value.
bool has_padding(const char* column, std::size_t bytes, std::size_t count, unsigned bits) noexcept {
  const std::size_t used = count * bits % 8;
  return used != 0 && (static_cast<std::uint8_t>(column[bytes - 1]) >> used) != 0;
}

bool read_layout(std::string_view payload, RunsLayout& layout) noexcept {
  const char* at = payload.data();
  layout.end = at + payload.size();
  const auto left = [&] { return static_cast<std::size_t>(layout.end - at); };
  if (left() < 1) return false;
  layout.flags = static_cast<std::uint8_t>(*at++);
  if ((layout.flags & format::kRunsReservedFlags) != 0) return false;
  const bool mixed = (layout.flags & format::kRunsMixedTypes) != 0;
  if (mixed && (layout.flags & format::kTypeMask) != 0) return false;
  layout.time_bytes =
      format::kTimeWidthMin + static_cast<std::size_t>(layout.flags >> format::kRunsTimeWidthShift);
  if (layout.time_bytes != format::kTimeWidthAbsolute) {
    if (left() < format::kTimeBaseBytes) return false;
    layout.base_ms = static_cast<std::int64_t>(format::load<format::kTimeBaseBytes>(at)) * 1000;
    at += format::kTimeBaseBytes;
  }
  if (format::load_varint(at, layout.end, layout.runs) != format::VarintCode::kOk) return false;
  const std::size_t runs = layout.runs;
  const std::size_t length_bytes = (runs + 1) / 2;
  const std::size_t type_bytes = mixed ? (runs + 3) / 4 : 0;
  if (runs == 0 || left() < length_bytes + type_bytes + runs * format::kHashBytes) return false;
  layout.lengths = at;
  layout.types = at + length_bytes;
  layout.escapes = layout.types + type_bytes;
  return !has_padding(layout.lengths, length_bytes, runs, 4) &&
         !has_padding(layout.types, type_bytes, mixed ? runs : 0, 2);
}

// Fills in the runs' lengths as [begin, end), counted from `first`, and moves escapes behind the
// last varint. False when there are more entries than the frame has bytes for.
bool read_lengths(RunsLayout& layout, std::uint32_t first, std::span<Run> runs) noexcept {
  std::uint64_t position = first;
  const auto bytes_left = static_cast<std::uint64_t>(layout.end - layout.escapes);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto pair = static_cast<std::uint8_t>(layout.lengths[i / 2]);
    const std::uint32_t nibble = i % 2 == 0 ? pair & 0x0FU : pair >> 4U;
    std::uint64_t length = std::uint64_t{nibble} + 1;
    if (nibble == format::kLengthEscape) {
      std::uint32_t more = 0;
      if (format::load_varint(layout.escapes, layout.end, more) != format::VarintCode::kOk) {
        return false;
      }
      length += more;
    }
    if (length > bytes_left) return false;
    runs[i].begin = static_cast<std::uint32_t>(position);
    position += length;
    if (position - first > bytes_left) return false;
    runs[i].end = static_cast<std::uint32_t>(position);
  }
  return true;
}

template <std::size_t kBytes>
void read_times(const char* at, std::int64_t base_ms, std::span<Instant> times) noexcept {
  for (Instant& time : times) {
    time = instant_from_ms(base_ms + static_cast<std::int64_t>(format::load<kBytes>(at)));
    at += kBytes;
  }
}

void read_times(const RunsLayout& layout, const char* at, std::span<Instant> times) noexcept {
  switch (layout.time_bytes) {
    case 3:
      return read_times<3>(at, layout.base_ms, times);
    case 4:
      return read_times<4>(at, layout.base_ms, times);
    case 5:
      return read_times<5>(at, layout.base_ms, times);
    default:
      return read_times<6>(at, 0, times);
  }
}

template <std::size_t kBytes>
bool read_indexed(const char* dictionary, std::uint32_t dictionary_size, const char* at,
                  std::span<std::uint64_t> creatives) noexcept {
  for (std::uint64_t& creative : creatives) {
    const std::uint64_t index = format::load<kBytes>(at);
    at += kBytes;
    if (index > dictionary_size) return false;
    creative =
        index == 0
            ? 0
            : format::load<format::kHashBytes>(dictionary + (index - 1) * format::kHashBytes);
  }
  return true;
}

// The dictionary and the indices fill the rest of the frame, to the byte.
bool read_creatives(const char* at, const char* end, std::span<std::uint64_t> creatives) noexcept {
  std::uint32_t count = 0;
  if (format::load_varint(at, end, count) != format::VarintCode::kOk || count == 0) return false;
  const std::size_t width = format::index_bytes(count);
  const std::size_t dictionary_bytes = count * format::kHashBytes;
  if (static_cast<std::size_t>(end - at) != dictionary_bytes + width * creatives.size()) {
    return false;
  }
  const char* const indices = at + dictionary_bytes;
  if (width == 1) return read_indexed<1>(at, count, indices, creatives);
  if (width == 2) return read_indexed<2>(at, count, indices, creatives);
  return read_indexed<4>(at, count, indices, creatives);
}

// Whether an entry stands behind one that it should come before, in the same run or not. Written
// without branches: which entries do is as random as times are.
std::uint32_t is_descent(std::span<const Instant> times, std::span<const std::uint32_t> prints,
                         std::size_t i) noexcept {
  const bool earlier = times[i] < times[i - 1];
  const bool tie = times[i] == times[i - 1];
  const bool not_above = prints[i] <= prints[i - 1];
  return static_cast<std::uint32_t>(earlier) |
         (static_cast<std::uint32_t>(tie) & static_cast<std::uint32_t>(not_above));
}

// Whether some fingerprint equals the one `distance` entries before it, in the same run or not.
bool any_repeat(std::span<const std::uint32_t> prints, std::size_t distance) noexcept {
  std::uint32_t repeats = 0;
  for (std::size_t i = distance; i < prints.size(); ++i) {
    repeats |= static_cast<std::uint32_t>(prints[i] == prints[i - distance]);
  }
  return repeats != 0;
}

bool has_duplicate_pairwise(std::span<const std::uint32_t> prints) noexcept {
  for (std::size_t distance = 1; distance < prints.size(); ++distance) {
    if (any_repeat(prints, distance)) return true;
  }
  return false;
}

// For long runs: a bit per value first. Fingerprints are hashes themselves.
bool has_duplicate_hashed(std::span<const std::uint32_t> prints) noexcept {
  constexpr std::size_t kBitsMax = 1U << 17U;
  const std::size_t bits = std::min(kBitsMax, std::bit_ceil(prints.size() * 64));
  std::uint64_t seen[kBitsMax / 64];  // NOLINT: only what is used is set to zero
  std::fill_n(seen, bits / 64, 0);
  // A suspicion is looked into; where there are too many, sorting everything is the cheaper way.
  std::size_t suspicions_left = 64 + prints.size() / 16;
  for (std::size_t i = 0; i < prints.size(); ++i) {
    const std::size_t bit = prints[i] & (bits - 1);
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    if ((seen[bit / 64] & mask) != 0) {
      if (suspicions_left-- == 0) return true;
      const auto before = prints.first(i);
      if (std::find(before.begin(), before.end(), prints[i]) != before.end()) return true;
    }
    seen[bit / 64] |= mask;
  }
  return false;
}

// Whether some run holds an identity twice, or may hold it.
bool has_duplicate(std::span<const Run> runs, std::span<const std::uint32_t> prints,
                   std::size_t longest) noexcept {
  // The usual record has short runs. One pass over all of them for each distance needs no branch
  // per run; it may find equal fingerprints of different runs (a click has its impression's id),
  // and then the runs are looked at one by one.
  constexpr std::size_t kShort = 8;
  if (longest <= kShort) {
    bool suspicious = false;
    for (std::size_t distance = 1; distance < longest; ++distance) {
      suspicious |= any_repeat(prints, distance);
    }
    if (!suspicious) return false;
  }
  constexpr std::size_t kPairwise = 48;
  return std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
    const auto own = prints.subspan(run.begin, run.end - run.begin);
    return own.size() <= kPairwise ? has_duplicate_pairwise(own) : has_duplicate_hashed(own);
  });
}

bool read_marker(std::string_view payload, Instant& marker) noexcept {
  if (payload.size() != format::kTimeBytes) return false;
  marker =
      instant_from_ms(static_cast<std::int64_t>(format::load<format::kTimeBytes>(payload.data())));
  return true;
}

}  // namespace

DecodeCode Ledger::decode(std::string_view record) {
  clear();
  try {
    const DecodeCode code = decode_into_empty(record);
    if (code != DecodeCode::kOk) clear();
    return code;
  } catch (...) {
    clear();
    throw;
  }
}

DecodeCode Ledger::decode_into_empty(std::string_view record) {
  const DecodeCode code = read_frames(record);
  if (code != DecodeCode::kOk) return code;
  if (columns_are_canonical()) {
    merge_loose();
  } else {
    rebuild_with_loose();
  }
  if (!reservations_.empty()) settle_reservations();
  apply_erasure();
  return DecodeCode::kOk;
}

DecodeCode Ledger::read_frames(std::string_view record) {
  // Indices into the columns are 32 bits; an entry takes more than one byte.
  if (record.size() > UINT32_MAX) return DecodeCode::kMalformed;
  format::FrameReader reader(record);
  format::Frame frame;
  while (reader.next(frame)) {
    bool valid = true;
    Instant marker;
    switch (static_cast<format::Tag>(frame.tag)) {
      case format::Tag::kRuns:
        valid = append_runs(frame.payload);
        break;
      case format::Tag::kEntry:
        valid = append_entry(frame.payload);
        break;
      case format::Tag::kErasedBefore:
        valid = read_marker(frame.payload, marker);
        if (valid) raise_erased_before(marker);
        break;
      case format::Tag::kCompleteSince:
        valid = read_marker(frame.payload, marker);
        if (valid) raise_complete_since(marker);
        break;
      case format::Tag::kReservation:
        valid = append_reservation(frame.payload);
        break;
      default:
        ++unknown_frames_;
    }
    if (!valid) return DecodeCode::kMalformed;
  }
  return reader.code();
}

bool Ledger::append_runs(std::string_view payload) {
  RunsLayout layout;
  if (!read_layout(payload, layout)) return false;
  const std::size_t first_run = runs_.size();
  const std::size_t first = times_.size();
  runs_.resize(first_run + layout.runs);
  const auto runs = std::span(runs_).subspan(first_run);
  if (!read_lengths(layout, static_cast<std::uint32_t>(first), runs)) return false;

  const std::size_t entries = runs.back().end - first;
  const char* const campaigns = layout.escapes;
  const auto bytes_left = static_cast<std::size_t>(layout.end - campaigns);
  const std::size_t campaign_bytes = runs.size() * format::kHashBytes;
  const std::size_t time_bytes = entries * layout.time_bytes;
  const std::size_t column_bytes =
      campaign_bytes + time_bytes + entries * format::kFingerprintBytes;
  const bool have_creatives = (layout.flags & format::kRunsHaveCreatives) != 0;
  if (have_creatives ? bytes_left <= column_bytes : bytes_left != column_bytes) return false;

  const bool mixed = (layout.flags & format::kRunsMixedTypes) != 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].campaign = format::load<format::kHashBytes>(campaigns + i * format::kHashBytes);
    const unsigned type =
        mixed ? unsigned{static_cast<std::uint8_t>(layout.types[i / 4])} >> (i % 4 * 2)
              : layout.flags;
    runs[i].type = static_cast<EventType>(type & format::kTypeMask);
  }
  times_.resize(first + entries);
  read_times(layout, campaigns + campaign_bytes, std::span(times_).subspan(first));
  fingerprints_.resize(first + entries);
  std::memcpy(fingerprints_.data() + first, campaigns + campaign_bytes + time_bytes,
              entries * format::kFingerprintBytes);
  creatives_.resize(first + entries);
  const auto creatives = std::span(creatives_).subspan(first);
  if (have_creatives) return read_creatives(campaigns + column_bytes, layout.end, creatives);
  std::fill(creatives.begin(), creatives.end(), 0);
  return true;
}

bool Ledger::append_entry(std::string_view payload) {
  if (payload.size() < format::kEntryPayloadBytes) return false;
  const char* at = payload.data();
  const auto flags = static_cast<std::uint8_t>(*at);
  const bool has_creative = (flags & format::kEntryHasCreative) != 0;
  if ((flags & ~(format::kTypeMask | format::kEntryHasCreative)) != 0 ||
      payload.size() != format::kEntryPayloadBytes + (has_creative ? format::kHashBytes : 0)) {
    return false;
  }
  Entry entry;
  entry.type = static_cast<EventType>(flags & format::kTypeMask);
  entry.campaign = format::load<format::kHashBytes>(at + 1);
  entry.time = instant_from_ms(static_cast<std::int64_t>(format::load<format::kTimeBytes>(at + 7)));
  entry.fingerprint = static_cast<std::uint32_t>(format::load<format::kFingerprintBytes>(at + 13));
  if (has_creative) entry.creative = format::load<format::kHashBytes>(at + 17);
  loose_.push_back(entry);
  return true;
}

bool Ledger::append_reservation(std::string_view payload) {
  if (payload.size() < format::kReservationPayloadBytes) return false;
  const char* at = payload.data();
  const auto flags = static_cast<std::uint8_t>(*at);
  constexpr std::uint8_t kKnown =
      format::kTypeMask | format::kReservationHasCreative | format::kReservationReleased;
  const bool has_creative = (flags & format::kReservationHasCreative) != 0;
  if ((flags & ~kKnown) != 0 || payload.size() != format::kReservationPayloadBytes +
                                                      (has_creative ? format::kHashBytes : 0)) {
    return false;
  }
  Reservation reservation;
  Entry& event = reservation.event;
  event.type = static_cast<EventType>(flags & format::kTypeMask);
  event.campaign = format::load<format::kHashBytes>(at + 1);
  event.time = instant_from_ms(static_cast<std::int64_t>(format::load<format::kTimeBytes>(at + 7)));
  event.fingerprint = static_cast<std::uint32_t>(format::load<format::kFingerprintBytes>(at + 13));
  reservation.expires = event.time + std::chrono::milliseconds{static_cast<std::int64_t>(
                                         format::load<format::kLifeBytes>(at + 17))};
  if (has_creative) event.creative = format::load<format::kHashBytes>(at + 21);
  reservation.released = (flags & format::kReservationReleased) != 0;
  reservations_.push_back(reservation);
  return true;
}

bool Ledger::columns_are_canonical() const noexcept {
  // Sorted runs descend nowhere but from one run to the next: so counting suffices.
  std::uint32_t descents = 0;
  for (std::size_t i = 1; i < times_.size(); ++i) descents += is_descent(times_, fingerprints_, i);
  std::size_t longest = 0;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const Run& run = runs_[r];
    longest = std::max<std::size_t>(longest, run.end - run.begin);
    if (r == 0) continue;
    descents -= is_descent(times_, fingerprints_, run.begin);
    if (std::tie(runs_[r - 1].campaign, runs_[r - 1].type) >= std::tie(run.campaign, run.type)) {
      return false;
    }
  }
  return descents == 0 && !has_duplicate(runs_, fingerprints_, longest);
}

}  // namespace fcap::ledger
