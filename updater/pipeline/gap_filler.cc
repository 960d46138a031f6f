#include "updater/pipeline/gap_filler.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "ledger/encode.h"
#include "ledger/user_key.h"
#include "redis/client.h"
#include "updater/pipeline/message_view.h"
#include "updater/pipeline/presence.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kLookupStep{1};
// Few enough for the smallest window, so that a chunk can always be written once those before it
// are.
constexpr std::size_t kChunkMax = FlightWindow::kWritesMin / 5;
constexpr std::size_t kLookupsMax = 5;

}  // namespace

// A chunk of messages by user, and the users' records as they are being read.
class GapFiller::ChunkLookup {
 public:
  ChunkLookup(const Coalescer::Options& records, Counter& unread)
      : users(records), unread_(&unread) {}

  void start(Store& store, Store::Deadline deadline) {
    records_.clear();
    users.for_each_user([this](std::string_view key, const auto&, const auto&) {
      records_.push_back(std::make_unique<LookupRecord>(*this, key));
    });
    pending_.store(records_.size(), std::memory_order_relaxed);
    for (const auto& record : records_) store.get(record->key, deadline, *record);
  }
  [[nodiscard]] bool ended() const noexcept {
    return pending_.load(std::memory_order_acquire) == 0;
  }
  // A user's record; empty: it does not exist or could not be read.
  [[nodiscard]] std::string_view record(std::size_t user) const noexcept {
    return records_[user]->bytes;
  }

  std::uint64_t ticket = 0;
  Coalescer users;
  BatchMessages taken;
  std::string event_key;  // scratch

 private:
  struct LookupRecord final : StoreCompletion {
    LookupRecord(ChunkLookup& owner, std::string_view of) : lookup(&owner), key(of) {}
    void complete(const StoreOutcome& outcome) noexcept override {
      if (outcome.code == StoreCode::kOk) {
        bytes.assign(outcome.record);
      } else if (outcome.code != StoreCode::kNotFound) {
        lookup->unread_->add();
      }
      lookup->pending_.fetch_sub(1, std::memory_order_acq_rel);
    }
    ChunkLookup* lookup;
    std::string key;
    std::string bytes;
  };
  std::vector<std::unique_ptr<LookupRecord>> records_;
  std::atomic<std::size_t> pending_{0};
  Counter* unread_;
};

GapFiller::GapFiller(GapFillerOptions options, GapFillerParts parts, Metrics& metrics)
    : options_(std::move(options)), parts_(std::move(parts)), metrics_(&metrics) {}

GapFiller::~GapFiller() {
  // Ends: every store operation completes by its deadline.
  for (const auto& lookup : lookups_) {
    while (!lookup->ended()) std::this_thread::sleep_for(kLookupStep);
  }
}

bool GapFiller::current(const Batch& batch) const {
  const auto piece = pieces_.find(batch.gap_ticket);
  return piece != pieces_.end() && parts_.partitions->recovery().filling(piece->second.what);
}

void GapFiller::written(const Batch& batch) {
  const auto piece = pieces_.find(batch.gap_ticket);
  if (piece == pieces_.end()) return;
  GapPiece& what = piece->second.what;
  what.failed |= parts_.partitions->recovery().not_counted(batch, what.partition, what.stamp);
  --piece->second.chunks;
}

void GapFiller::await_letter(const Batch& batch, std::int64_t offset) {
  const auto piece = pieces_.find(batch.gap_ticket);
  if (piece != pieces_.end()) piece->second.letters.insert(offset);
}

void GapFiller::letter_arrived(std::int32_t partition, std::int64_t offset) {
  for (auto& [ticket, piece] : pieces_) {
    if (piece.what.partition != partition) continue;
    const auto letter = piece.letters.find(offset);
    if (letter != piece.letters.end()) piece.letters.erase(letter);
  }
}

void GapFiller::tick(Clock::time_point now, bool read) {
  drop_passed();
  settle_lookups();
  finish_pieces();
  if (read) {
    begin_pieces(now);
    while (lookups_.size() < kLookupsMax && take_chunk(now)) {
    }
  }
  show_gaps(*parts_.partitions, *metrics_);
}

void show_gaps(const PartitionSet& partitions, Metrics& metrics) {
  const std::int64_t missing = partitions.recovery().offsets_missing();
  metrics.gap_offsets.set(missing != 0 || partitions.gaps_known() ? missing : Gauge::kUnknown);
}

void GapFiller::drop_passed() {
  std::erase_if(pieces_, [this](const auto& it) {
    if (parts_.partitions->recovery().filling(it.second.what)) return false;
    parts_.log->stop(it.second.what.partition);
    return true;
  });
}

bool GapFiller::being_filled(std::int32_t partition) const {
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [partition](const auto& it) { return it.second.what.partition == partition; });
}

void GapFiller::begin_pieces(Clock::time_point now) {
  parts_.partitions->recovery().list_pieces(listed_);
  for (const GapPiece& piece : listed_) {
    if (pieces_.size() >= options_.partitions_max) return;
    if (being_filled(piece.partition)) continue;
    const auto wait = not_before_.find(piece.partition);
    if (wait != not_before_.end() && now < wait->second) continue;
    const std::uint64_t ticket = ++tickets_;
    pieces_[ticket].what = piece;
    parts_.log->read(ticket, piece.partition, piece.from, piece.to);
  }
}

bool GapFiller::take_chunk(Clock::time_point now) {
  const std::size_t most = std::min(room(), kChunkMax);
  if (most == 0 || pieces_.empty()) return false;
  const std::optional<GapLog::Chunk> chunk = parts_.log->next_chunk(most);
  if (!chunk) return false;
  const auto found = pieces_.find(chunk->ticket);
  if (found == pieces_.end()) return true;  // passed
  OpenPiece& piece = found->second;
  if (!chunk->failure.empty()) {
    const std::string text =
        fmt::format("partition {}: cannot read the gap from {} to {}; retrying: {}",
                    piece.what.partition, piece.what.from, piece.what.to, chunk->failure);
    // This happens every second; the first, second, fourth … time is logged.
    const std::uint64_t times = unreadable_.note(text, now);
    if (parts_.report && times > 0) {
      parts_.report(LogLevel::kWarning,
                    times == 1 ? text : fmt::format("{} ({} times)", text, times));
    }
    give_up(found, now);
    return true;
  }
  piece.read_to_end = piece.read_to_end || chunk->end;
  if (chunk->log_start) piece.log_start = chunk->log_start;
  if (chunk->messages.empty()) {
    if (piece.read_to_end) tell_expired(piece, std::nullopt);
    return true;
  }
  if (!std::exchange(piece.begun, true)) {
    parts_.partitions->piece_begun(piece.what, chunk->messages.front().what);
  }
  if (idle_.empty()) {
    idle_.push_back(std::make_unique<ChunkLookup>(options_.records, metrics_->gap_records_unread));
  }
  std::unique_ptr<ChunkLookup> lookup = std::move(idle_.back());
  idle_.pop_back();
  if (!take_messages(piece, *chunk, *lookup)) {
    idle_.push_back(std::move(lookup));
    give_up(found, now);
    return true;
  }
  if (!chunk->log_start) {
    tell_expired(piece, piece.newest);
  } else if (piece.read_to_end) {
    tell_expired(piece, std::nullopt);  // the chunk's messages were before them
  }
  ++piece.chunks;
  lookup->start(*parts_.store, now + options_.read_deadline);
  lookups_.push_back(std::move(lookup));
  return true;
}

// Each user whose record is being looked up becomes a write. Without counting these, the lookups
// under way could together exceed the room that gaps have.
std::size_t GapFiller::room() const noexcept {
  const std::size_t room = parts_.writer->gap_room();
  std::size_t taken = 0;
  for (const auto& lookup : lookups_) taken += lookup->taken.positions.size();
  return room - std::min(room, taken);
}

void GapFiller::tell_expired(OpenPiece& piece, std::optional<Instant> newest) {
  const auto log_start = std::exchange(piece.log_start, std::nullopt);
  if (!log_start) return;
  parts_.partitions->recovery().expire(piece.what, *log_start, newest,
                                       parts_.clocks().earliest - options_.records.retention);
}

void GapFiller::give_up(Pieces::iterator piece, Clock::time_point now) {
  const std::int32_t partition = piece->second.what.partition;
  not_before_[partition] = now + options_.again_after;
  parts_.log->stop(partition);
  pieces_.erase(piece);
}

bool GapFiller::take_messages(OpenPiece& piece, const GapLog::Chunk& chunk, ChunkLookup& lookup) {
  lookup.ticket = chunk.ticket;
  lookup.taken.clear();
  lookup.taken.messages = chunk.messages.size();
  const IntakeClocks clocks = parts_.clocks();
  LeftOut left_out;
  std::uint64_t bytes = 0;
  for (const GapLog::GapMessage& message : chunk.messages) {
    bytes += message.what.payload.size();
    if (!take_message(piece, message, clocks, lookup, left_out)) {
      lookup.users.clear();
      return false;
    }
  }
  metrics_->messages.add(chunk.messages.size());
  metrics_->message_bytes.add(bytes);
  metrics_->gap_messages.add(chunk.messages.size());
  metrics_->events_too_old.add(left_out.too_old);
  metrics_->events_null_user.add(left_out.null_user);
  return true;
}

bool GapFiller::take_message(OpenPiece& piece, const GapLog::GapMessage& message,
                             const IntakeClocks& clocks, ChunkLookup& lookup, LeftOut& left_out) {
  const PartitionOffset at{piece.what.partition, message.what.offset};
  std::optional<MessageView> view;
  if (message.whole != nullptr) view.emplace(*message.whole, options_.topic);
  if (message.what.timestamp_ms >= 0) {
    note_newest(piece, instant_from_ms(message.what.timestamp_ms));
  }
  Intake& intake = *parts_.intake;
  if (!(view ? intake.decode(view->message()) : intake.decode(message.what.payload))) return false;
  intake.sort_events(
      clocks, left_out,
      [&](const events::Event& event) {
        note_newest(piece, event.time);
        if (is_in(piece, event, lookup)) lookup.taken.take(event, at, lookup.users);
      },
      [&](const events::Rejected& why) {
        // It may have been rejected before, perhaps with other settings or clocks.
        parts_.reject(at.partition, message, why);
        piece.letters.insert(at.offset);
      });
  return true;
}

// In a cluster, only the events of some users are missing.
bool GapFiller::is_in(const OpenPiece& piece, const events::Event& event,
                      ChunkLookup& lookup) const {
  if (!parts_.partitions->by_slot()) return true;
  ledger::user_key(options_.records.key_prefix, event.user_id, lookup.event_key);
  return piece.what.slots.contains(redis::slot_of(lookup.event_key));
}

void GapFiller::note_newest(OpenPiece& piece, Instant at) {
  piece.newest = std::max(piece.newest.value_or(at), at);
}

void GapFiller::settle_lookups() {
  for (std::size_t i = 0; i < lookups_.size();) {
    const bool wanted = pieces_.contains(lookups_[i]->ticket);
    // The window may have shrunk meanwhile.
    const bool fits = parts_.writer->gap_fits(lookups_[i]->taken.positions.size());
    if (!lookups_[i]->ended() || (wanted && !fits)) {
      ++i;
      continue;
    }
    std::unique_ptr<ChunkLookup> lookup = std::move(lookups_[i]);
    lookups_.erase(lookups_.begin() + static_cast<std::ptrdiff_t>(i));
    if (wanted) {
      submit(*lookup);
    } else {
      lookup->users.clear();
    }
    idle_.push_back(std::move(lookup));
  }
}

void GapFiller::submit(ChunkLookup& lookup) {
  Batch& batch = parts_.writer->take();
  batch.gap_ticket = lookup.ticket;
  static_cast<BatchMessages&>(batch) = lookup.taken;
  lookup.users.finish(batch.writes, [&](std::size_t user, auto& entries, auto& erased_until) {
    // If a record cannot be decoded, everything is appended: correctness does not depend on having
    // read it.
    const bool known = ledger_.decode(lookup.record(user)) == ledger::DecodeCode::kOk;
    batch.found_there.push_back(known && !lookup.record(user).empty() &&
                                keep_missing(ledger_, entries, erased_until));
  });
  parts_.writer->submit(batch);
}

void GapFiller::finish_pieces() {
  std::erase_if(pieces_, [this](const auto& it) {
    const OpenPiece& piece = it.second;
    if (!piece.read_to_end || piece.chunks > 0 || !piece.letters.empty()) return false;
    if (parts_.partitions->recovery().piece_done(piece.what) && parts_.filled) {
      parts_.filled(piece.what, piece.newest);
    }
    return true;
  });
}

}  // namespace fcap::updater
