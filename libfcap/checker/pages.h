#pragma once

#include <span>
#include <vector>

#include <fcap/checker.h>

#include "checker/async_pick.h"
#include "checker/blocking_checks.h"
#include "checker/blocking_hard_calls.h"
#include "checker/callback_checks.h"
#include "checker/callback_hard_calls.h"
#include "checker/parts.h"
#include "checker/reserve_run.h"
#include "checker/shared_note_writer.h"

namespace fcap::checker {

/// The forms of Checker::pick(). A reserved page is a hard call; a shared one is a check whose
/// picks are noted.
///
/// Thread safety: all functions from any thread.
class Pages {
 public:
  /// All of them outlive it.
  Pages(SharedParts parts, BlockingChecks& blocking, CallbackChecks& async,
        BlockingHardCalls& reserving, CallbackHardCalls& async_reserving, SharedNoteWriter& sharing)
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
  /// A page on its way: a shared one as a read, a reserved one as a hard call.
  struct Begun {
    CallbackChecks::HeldRead shared;
    CallbackHardCalls::Begun reserved;
  };

  template <typename Callback>
  Begun begin(const PageRequest& page, const PageOptions& options, Callback callback) noexcept;
  CallbackChecks::HeldRead begin_shared(const ReserveAsk& ask,
                                        AsyncPick::Callback callback) noexcept;
  [[nodiscard]] PagePicks pick_shared(const ReserveAsk& ask) noexcept;
  [[nodiscard]] PagePicks refused(const ReserveAsk& ask, Reason reason) noexcept;
  void count_overloaded(std::span<const PageRequest> pages) noexcept;

  SharedParts parts_;
  BlockingChecks& blocking_;
  CallbackChecks& async_;
  BlockingHardCalls& reserving_;
  CallbackHardCalls& async_reserving_;
  SharedNoteWriter& sharing_;
};

}  // namespace fcap::checker
