#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fcap/checker.h>

#include "checker/async.h"
#include "checker/async_pick.h"
#include "checker/blocking.h"
#include "checker/judgement.h"
#include "checker/parts.h"
#include "checker/reserve_run.h"
#include "checker/sharing.h"

namespace fcap::checker {

/// The forms of Checker::pick_and_share().
///
/// Thread safety: all functions from any thread.
class PickAndShare {
 public:
  PickAndShare(Parts parts, Blocking& blocking, Async& async, Sharing& sharing)
      : parts_(parts), blocking_(blocking), async_(async), sharing_(sharing) {}

  PickResult pick(const ReserveAsk& ask, const CheckOptions& options) noexcept;
  /// Copies what the ask refers to.
  void start(const ReserveAsk& ask, const CheckOptions& options,
             Checker::PickCallback callback) noexcept {
    static_cast<void>(begin(ask, options, std::move(callback)));
  }
  std::vector<PickResult> batch(std::span<const PageRequest> pages,
                                const CheckOptions& options) noexcept;

 private:
  Async::HeldRead begin(const ReserveAsk& ask, const CheckOptions& options,
                        AsyncPick::Callback callback) noexcept;
  [[nodiscard]] PickResult refused(const ReserveAsk& ask, const CheckOptions& options,
                                   Reason reason) noexcept;

  Parts parts_;
  Blocking& blocking_;
  Async& async_;
  Sharing& sharing_;
};

/// Notes what was picked for an ask's slots and tells other servers, in one write. `at`: when it is
/// shown; none: by the Checker's clock. `shown` has room for one entry per slot; without it,
/// nothing is shared.
void share_picks(Judgement& judgement, Sharing& sharing, const ReserveAsk& ask,
                 std::optional<Instant> at, const PickResult& picks,
                 std::vector<ledger::Entry>& shown) noexcept;

}  // namespace fcap::checker
