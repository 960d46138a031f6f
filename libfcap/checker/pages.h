#pragma once

#include <span>
#include <vector>

#include <fcap/checker.h>

#include "checker/async.h"
#include "checker/async_pick.h"
#include "checker/async_reserving.h"
#include "checker/blocking.h"
#include "checker/parts.h"
#include "checker/reserve_run.h"
#include "checker/reserving.h"
#include "checker/sharing.h"

namespace fcap::checker {

/// The forms of Checker::pick(). A reserved page is a hard call; a shared one is a check whose
/// picks are noted.
///
/// Thread safety: all functions from any thread.
class Pages {
 public:
  /// All of them outlive it.
  Pages(Parts parts, Blocking& blocking, Async& async, Reserving& reserving,
        AsyncReserving& async_reserving, Sharing& sharing)
      : parts_(parts),
        blocking_(blocking),
        async_(async),
        reserving_(reserving),
        async_reserving_(async_reserving),
        sharing_(sharing) {}

  PagePicks pick(const PageRequest& page, const PageOptions& options) noexcept;
  /// Copies what the arguments refer to.
  void start(const PageRequest& page, const PageOptions& options,
             Checker::PageCallback callback) noexcept;
  std::vector<PagePicks> batch(std::span<const PageRequest> pages,
                               const PageOptions& options) noexcept;

 private:
  /// A page on its way, in one of the two.
  struct Begun {
    Async::HeldRead shared;
    AsyncReserving::Begun reserved;
  };

  template <typename Callback>
  Begun begin(const PageRequest& page, const PageOptions& options, Callback callback) noexcept;
  Async::HeldRead begin_shared(const ReserveAsk& ask, AsyncPick::Callback callback) noexcept;
  [[nodiscard]] PagePicks pick_shared(const ReserveAsk& ask) noexcept;
  [[nodiscard]] PagePicks refused(const ReserveAsk& ask, Reason reason) noexcept;
  void count_overloaded(std::span<const PageRequest> pages) noexcept;

  Parts parts_;
  Blocking& blocking_;
  Async& async_;
  Reserving& reserving_;
  AsyncReserving& async_reserving_;
  Sharing& sharing_;
};

}  // namespace fcap::checker
