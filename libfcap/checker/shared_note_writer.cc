#include "checker/shared_note_writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "checker/reserve_run.h"
#include "checker/write_terms.h"
#include "ledger/encode.h"
#include "ledger/user_key.h"

namespace fcap::checker {
namespace {

// Nobody waits for it, so it may take as long as other writes take.
constexpr std::chrono::seconds kWriteTime{2};

}  // namespace

// One write on its way; ends itself.
class SharedNoteWriter::NoteWrite final : public StoreCompletion {
 public:
  explicit NoteWrite(std::shared_ptr<std::atomic<std::uint64_t>> failures)
      : failures_(std::move(failures)) {}
  void complete(const StoreOutcome& outcome) noexcept override {
    if (outcome.code != StoreCode::kOk) failures_->fetch_add(1, std::memory_order_relaxed);
    delete this;
  }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> failures_;
};

SharedNoteWriter::SharedNoteWriter(SharedParts parts)
    : parts_(parts), failures_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

// Which counter says why it is not shared; CheckerCounter::shared: it is.
CheckerCounter SharedNoteWriter::refused(const SeenRecord& seen, const WriteTerms& terms,
                                         Instant now, std::size_t count) const noexcept {
  const Reason refused = refuse_writing(terms, now);
  if (refused == Reason::kClock) return CheckerCounter::shares_clock;
  if (refused != Reason::kPassed) return CheckerCounter::shares_no_config;
  if (!seen.known) return CheckerCounter::shares_unread;
  const bool has_room =
      refuse_record(terms, seen.bytes, seen.reservations + count - 1) == Reason::kPassed;
  return has_room ? CheckerCounter::shared : CheckerCounter::shares_no_room;
}

bool SharedNoteWriter::share(std::string_view user, std::span<const ledger::Entry> shown,
                             const SeenRecord& seen) noexcept {
  if (shown.empty()) return false;
  const CountedCall inside(parts_.counters);
  if (parts_.gate.closing()) return false;
  const WriteTerms terms = parts_.store.write_terms();
  const Instant now = shown.front().time;
  const CheckerCounter counter = refused(seen, terms, now, shown.size());
  parts_.counters.add(counter, shown.size());
  if (counter != CheckerCounter::shared) return false;
  const auto life =
      std::min<std::chrono::milliseconds>(kSharedNoteLife, terms.reservation_life_max);
  try {
    std::string frames;
    for (const ledger::Entry& event : shown) {
      ledger::append_reservation({.event = event, .expires = event.time + life}, frames);
    }
    send(user, frames, now);
    return true;
  } catch (...) {  // no memory
    failures_->fetch_add(1, std::memory_order_relaxed);
    return false;
  }
}

void SharedNoteWriter::take_back(std::string_view user, const ledger::Entry& shown) noexcept {
  const CountedCall inside(parts_.counters);
  if (parts_.gate.closing()) return;
  parts_.counters.add(CheckerCounter::shares_taken_back);
  try {
    std::string frame;
    append_release(shown, frame);
    send(user, frame, shown.time);
  } catch (...) {  // no memory
    failures_->fetch_add(1, std::memory_order_relaxed);
  }
}

void SharedNoteWriter::send(std::string_view user, const std::string& frames, Instant now) {
  std::string key;
  ledger::user_key(parts_.options.key_prefix, user, key);
  // Owned by the store until it calls complete().
  auto* const write = new NoteWrite(failures_);
  parts_.store.append_note(key, frames, now + parts_.options.retention,
                           std::chrono::steady_clock::now() + kWriteTime, *write);
}

void SharedNoteWriter::add_stats(CheckerStats& stats) const noexcept {
  stats.shares.failed = failures_->load(std::memory_order_relaxed);
}

}  // namespace fcap::checker
