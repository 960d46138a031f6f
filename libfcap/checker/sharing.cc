#include "checker/sharing.h"

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
class Sharing::Write final : public StoreCompletion {
 public:
  explicit Write(std::shared_ptr<std::atomic<std::uint64_t>> failures)
      : failures_(std::move(failures)) {}
  void complete(const StoreOutcome& outcome) noexcept override {
    if (outcome.code != StoreCode::kOk) failures_->fetch_add(1, std::memory_order_relaxed);
    delete this;
  }

 private:
  std::shared_ptr<std::atomic<std::uint64_t>> failures_;
};

Sharing::Sharing(Parts parts)
    : parts_(parts), failures_(std::make_shared<std::atomic<std::uint64_t>>(0)) {}

// Which counter says why it is not shared; Counter::shared: it is.
Counter Sharing::refused(const SeenRecord& seen, const WriteTerms& terms, Instant now,
                         std::size_t count) const noexcept {
  const Reason refused = refuse_writing(terms, now);
  if (refused == Reason::kClock) return Counter::shares_clock;
  if (refused != Reason::kPassed) return Counter::shares_no_config;
  if (!seen.known) return Counter::shares_unread;
  const bool has_room =
      refuse_record(terms, seen.bytes, seen.reservations + count - 1) == Reason::kPassed;
  return has_room ? Counter::shared : Counter::shares_no_room;
}

bool Sharing::share(std::string_view user, std::span<const ledger::Entry> shown,
                    const SeenRecord& seen) noexcept {
  if (shown.empty()) return false;
  const CallInside inside(parts_.counters);
  if (parts_.gate.closing()) return false;
  const WriteTerms terms = parts_.store.write_terms();
  const Instant now = shown.front().time;
  const Counter counter = refused(seen, terms, now, shown.size());
  parts_.counters.add(counter, shown.size());
  if (counter != Counter::shared) return false;
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

void Sharing::take_back(std::string_view user, const ledger::Entry& shown) noexcept {
  const CallInside inside(parts_.counters);
  if (parts_.gate.closing()) return;
  parts_.counters.add(Counter::shares_taken_back);
  try {
    std::string frame;
    append_release(shown, frame);
    send(user, frame, shown.time);
  } catch (...) {  // no memory
    failures_->fetch_add(1, std::memory_order_relaxed);
  }
}

void Sharing::send(std::string_view user, const std::string& frames, Instant now) {
  std::string key;
  ledger::user_key(parts_.options.key_prefix, user, key);
  // Owned by the store until it calls complete().
  auto* const write = new Write(failures_);
  parts_.store.append_note(key, frames, now + parts_.options.retention,
                           std::chrono::steady_clock::now() + kWriteTime, *write);
}

void Sharing::add_stats(CheckerStats& stats) const noexcept {
  stats.shares.failed = failures_->load(std::memory_order_relaxed);
}

}  // namespace fcap::checker
