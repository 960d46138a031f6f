#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checker/stripes.h"
#include "ledger/ledger.h"

namespace fcap::checker {

/// The impressions that this process served in the last seconds, until the ledger has them:
/// note_shown()'s memory. Kept by the user's whole id, so that nobody is capped for somebody else.
///
/// Bounded twice: in all, and per user, because an id that many people share ("0", "optout") would
/// otherwise collect thousands of events that each of its checks has to merge. The oldest make room
/// for the newest. An event takes about 200 bytes and its user's id. No call does more than a
/// small, fixed amount of work under a lock that other users share.
///
/// Thread safety: all functions from any thread.
class ShownEvents {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    std::size_t events_max = 0;
    std::chrono::milliseconds kept_for{0};
  };

  /// The newest of one user are kept, this many: no sensible cap is still open beyond it.
  static constexpr std::size_t kEventsPerUserMax = 64;

  /// What became of a user's events when a ledger was read.
  struct Merged {
    std::size_t unconfirmed = 0;  ///< added to the ledger
    std::size_t confirmed = 0;    ///< the ledger had them; forgotten
  };

  /// Throws std::bad_alloc.
  explicit ShownEvents(Limits limits);

  /// Remembers an event; one that is noted again counts once. Returns how many others had to make
  /// room that the ledger has not been seen to have. Throws std::bad_alloc.
  std::size_t note(std::string_view user, const ledger::Entry& shown, Clock::time_point now);

  /// Notes that other servers have been told of an event, if it is remembered.
  void mark_shared(std::string_view user, const ledger::Entry& shown) noexcept;

  /// What take_back() has found.
  enum class Taken : std::uint8_t { kNothing, kLocal, kShared };
  /// Forgets the user's event of this identity (campaign, type, fingerprint).
  Taken take_back(std::string_view user, const ledger::Entry& shown) noexcept;

  /// Whether anything was ever noted. Hosts that never do pay for neither a clock nor a lock.
  [[nodiscard]] bool used() const noexcept { return used_.load(std::memory_order_relaxed); }

  /// Adds what the ledger does not have yet, and forgets what it has. Throws std::bad_alloc.
  /// Events with a fingerprint of `except` are passed over.
  Merged merge_into(std::string_view user, Clock::time_point now, ledger::Ledger& ledger,
                    std::span<const std::uint32_t> except = {});

  /// How many are remembered, those included whose time is over but which nothing has pushed out.
  [[nodiscard]] std::size_t size() const noexcept;

 private:
  struct NotedEvent {
    const std::string* user = nullptr;  ///< the key in EventsStripe::users
    ledger::Entry entry;
    Clock::time_point noted_at;
    bool shared = false;
  };
  using Events = std::list<NotedEvent>;

  struct StringHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
      return std::hash<std::string_view>()(text);
    }
  };
  /// A user's events in the order in which they were noted; never empty.
  using UserEvents = std::vector<Events::iterator>;
  using Users = std::unordered_map<std::string, UserEvents, StringHash, std::equal_to<>>;

  struct alignas(kCacheLineBytes) EventsStripe {
    mutable std::mutex mutex;
    Events events;  ///< of all users, in the order in which they were noted
    Users users;
  };

  [[nodiscard]] EventsStripe& part_of(std::string_view user) noexcept;
  [[nodiscard]] std::vector<ledger::Entry> copy_of(std::string_view user, Clock::time_point now);
  [[nodiscard]] static UserEvents::const_iterator find(const UserEvents& events,
                                                       const ledger::Entry& shown) noexcept;
  static void forget(EventsStripe& part, Users::iterator user, std::size_t index) noexcept;
  static void forget_oldest(EventsStripe& part) noexcept;
  void forget_expired(EventsStripe& part, Clock::time_point now) const noexcept;
  [[nodiscard]] bool expired(const NotedEvent& event, Clock::time_point now) const noexcept {
    return now - event.noted_at >= limits_.kept_for;
  }

  const Limits limits_;
  std::atomic<bool> used_{false};
  std::vector<std::unique_ptr<EventsStripe>> parts_;
};

}  // namespace fcap::checker
