#include <algorithm>

#include "ledger/encode.h"
#include "ledger/encode_runs.h"
#include "ledger/format.h"

namespace fcap::ledger {

void append_entries(std::span<const Entry> entries, std::string& out) {
  for (const Entry& entry : entries) {
    const std::uint64_t creative = entry.creative & format::kHashMask;
    const bool has_creative = creative != 0;
    out.push_back(static_cast<char>(format::Tag::kEntry));
    out.push_back(
        static_cast<char>(format::kEntryPayloadBytes + (has_creative ? format::kHashBytes : 0)));
    out.push_back(static_cast<char>((static_cast<std::uint8_t>(entry.type) & format::kTypeMask) |
                                    (has_creative ? format::kEntryHasCreative : 0)));
    format::store<format::kHashBytes>(entry.campaign, out);
    format::store<format::kTimeBytes>(
        static_cast<std::uint64_t>(to_ms(format::representable(entry.time))), out);
    format::store<format::kFingerprintBytes>(entry.fingerprint, out);
    if (has_creative) format::store<format::kHashBytes>(creative, out);
  }
}

void append_erased_before(Instant until, std::string& out) {
  format::append_marker(format::Tag::kErasedBefore, until, out);
}

std::size_t compacted_bytes(std::string_view record) noexcept {
  // A compacted record is in this order, frames with unknown tags anywhere. Whatever comes out of
  // order was appended to it.
  enum class RecordStage : std::uint8_t { kStart, kErasedBefore, kCompleteSince, kRuns, kTail };
  format::FrameReader reader(record);
  format::Frame frame;
  RecordStage reached = RecordStage::kStart;
  std::size_t bytes = 0;
  while (reader.next(frame)) {
    RecordStage stage = reached;
    switch (static_cast<format::Tag>(frame.tag)) {
      case format::Tag::kErasedBefore:
        stage =
            reached < RecordStage::kErasedBefore ? RecordStage::kErasedBefore : RecordStage::kTail;
        break;
      case format::Tag::kCompleteSince:
        stage = reached < RecordStage::kCompleteSince ? RecordStage::kCompleteSince
                                                      : RecordStage::kTail;
        break;
      case format::Tag::kRuns:
        stage = reached < RecordStage::kRuns ? RecordStage::kRuns : RecordStage::kTail;
        break;
      case format::Tag::kEntry:
        stage = RecordStage::kTail;
        break;
      default:
        break;
    }
    if (reached != RecordStage::kTail && stage != RecordStage::kTail) bytes += frame.bytes.size();
    reached = stage == RecordStage::kTail ? stage : std::max(reached, stage);
  }
  return reader.code() == DecodeCode::kOk ? bytes : 0;
}

namespace format {

std::size_t frame_bytes(const Reservation& reservation) noexcept {
  return 2 + kReservationPayloadBytes + (reservation.event.creative != 0 ? kHashBytes : 0);
}

}  // namespace format

void append_reservation(const Reservation& reservation, std::string& out) {
  const Entry& event = reservation.event;
  const bool has_creative = event.creative != 0;
  const Instant time = format::representable(event.time);
  const auto life = std::clamp<std::int64_t>(to_ms(reservation.expires) - to_ms(time), 0,
                                             format::kReservationLifeMax.count());
  using format::store;
  out.push_back(static_cast<char>(format::Tag::kReservation));
  out.push_back(static_cast<char>(format::frame_bytes(reservation) - 2));
  out.push_back(static_cast<char>((static_cast<std::uint8_t>(event.type) & format::kTypeMask) |
                                  (has_creative ? format::kReservationHasCreative : 0) |
                                  (reservation.released ? format::kReservationReleased : 0)));
  store<format::kHashBytes>(event.campaign, out);
  store<format::kTimeBytes>(static_cast<std::uint64_t>(to_ms(time)), out);
  store<format::kFingerprintBytes>(event.fingerprint, out);
  store<format::kLifeBytes>(static_cast<std::uint64_t>(life), out);
  if (has_creative) store<format::kHashBytes>(event.creative, out);
}

}  // namespace fcap::ledger
