#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/time.h>

#include "ledger/ledger.h"
#include "redis/client.h"

namespace fcap::bench {

inline constexpr std::chrono::hours kSlidingWindow{24};
inline constexpr std::chrono::days kFixedWindow{30};
inline constexpr std::chrono::days kRetention{32};
/// kRetention for EXPIRE.
inline constexpr std::string_view kRetentionS = "2764800";

/// The one rule that a layout is set up to answer.
enum class WindowKind : std::uint8_t {
  kSliding,   ///< the last 24 hours
  kCalendar,  ///< the current month, UTC
  kFixed,     ///< 30 days from the first event
};

struct PeerImpression {
  Instant time;
  std::string_view campaign;
  std::uint32_t fingerprint = 0;  ///< of the event's id
};
ledger::Entry entry_of(const PeerImpression& impression);

/// How often has `user` seen each of these, as of `now`?
struct PeerQuestion {
  std::string_view user;
  std::span<const std::string> campaigns;
  Instant now;
};

/// What a layout is and can do.
struct LayoutTraits {
  std::string name;   ///< as in JSON
  std::string title;  ///< as in tables
  WindowKind window = WindowKind::kSliding;
  bool counts_once = true;  ///< an event that is recorded again still counts once
  bool takes_late = true;   ///< an event recorded after a newer one counts where it belongs
  std::vector<std::string_view> scripts = {};  ///< to be loaded before anything else
};

/// One way to keep frequency counts in Redis, written as those who propose it would write it well.
/// It only makes commands and reads replies: all layouts travel over the same transport, so that
/// the layout is what is compared.
///
/// Not thread-safe; one Layout per thread.
class Layout {
 public:
  explicit Layout(LayoutTraits traits) : traits_(std::move(traits)) {}
  virtual ~Layout() = default;
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  [[nodiscard]] const LayoutTraits& traits() const noexcept { return traits_; }

  /// Adds the commands that record an impression.
  virtual void record(redis::Request& request, std::string_view user,
                      const PeerImpression& impression) = 0;
  /// Adds the commands that ask.
  virtual void ask(redis::Request& request, const PeerQuestion& question) = 0;
  /// Reads the reply to the `index`-th command of ask() into `counts`, one per campaign, zero at
  /// first. False: that is no reply to it.
  [[nodiscard]] virtual bool read(const PeerQuestion& question, std::uint32_t index,
                                  const redis::Reply& reply, std::span<std::uint32_t> counts) = 0;

 private:
  const LayoutTraits traits_;
};

std::unique_ptr<Layout> make_ledger_layout(WindowKind window = WindowKind::kSliding);

/// All but the ledger; the sorted sets first.
std::vector<std::unique_ptr<Layout>> make_peers();

}  // namespace fcap::bench
