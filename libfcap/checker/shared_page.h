#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <fcap/page.h>

#include "checker/judgement.h"
#include "checker/reserve_run.h"
#include "checker/shared_note_writer.h"

namespace fcap::checker {

/// The answer to a page whose picks are shared, and what that needs. All memory is taken before
/// anything is picked.
///
/// Thread safety: none.
class SharedPage {
 public:
  /// Throws std::bad_alloc.
  SharedPage(Judgement& judgement, SharedNoteWriter& sharing, std::size_t slot_count);

  /// Notes what was picked for an ask's slots, tells other servers in one write, and gives the
  /// answer. `at`: when it is shown; none: by the Checker's clock. Once.
  [[nodiscard]] PagePicks share(const ReserveAsk& ask, std::optional<Instant> at,
                                const PickResult& picked) noexcept;

 private:
  Judgement& judgement_;
  SharedNoteWriter& sharing_;
  std::vector<ledger::Entry> shown_;
  PagePicks page_;
};

}  // namespace fcap::checker
