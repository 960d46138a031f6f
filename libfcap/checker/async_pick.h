#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fcap/checker.h>

#include "checker/batch_answers.h"
#include "checker/judgement.h"
#include "checker/reserve_run.h"
#include "checker/shared_note_writer.h"
#include "checker/shared_page.h"

namespace fcap::checker {

/// A shared page that is asked for asynchronously or in a batch. It travels with the AsyncRead that
/// reads the user's record, and takes the place of a check's verdicts and callback there.
///
/// Thread safety: none; it is used by whoever holds the AsyncRead.
class AsyncPick {
 public:
  using Callback = std::variant<Checker::PageCallback, BatchSlot<PagePicks>>;

  /// Copies what the ask refers to, and takes the callback last. Throws std::bad_alloc; then the
  /// callback is left alone.
  AsyncPick(Judgement& judgement, SharedNoteWriter& sharing, const ReserveAsk& ask,
            Callback&& callback);

  /// kInvalid: the event ids are outside their range. Otherwise kPassed.
  [[nodiscard]] Reason refuse_ids() const noexcept;
  /// As Judgement::answer_without_record(), answer() and refuse().
  [[nodiscard]] bool answer_without_record(const Question& question);
  void answer(const Question& question, const ReadOutcome& outcome);
  void refuse(Reason reason) noexcept;

  /// How many were picked, and the check's reason.
  [[nodiscard]] std::size_t picked() const noexcept { return picks_.picked.size(); }
  [[nodiscard]] Reason reason() const noexcept { return reason_; }
  /// Once it is answered: notes and shares the picks.
  [[nodiscard]] PagePicks take_result() noexcept;
  [[nodiscard]] std::size_t judged() const noexcept { return picks_.judged; }
  [[nodiscard]] Callback& callback() noexcept { return callback_; }
  /// Null: it is no batch's.
  [[nodiscard]] const BatchTime* batch() const noexcept {
    const auto* const slot = std::get_if<BatchSlot<PagePicks>>(&callback_);
    return slot == nullptr ? nullptr : slot->answers.get();
  }

 private:
  struct PickNames {
    std::string campaign;
    std::string creative;
  };

  [[nodiscard]] ReserveAsk ask() const noexcept {
    return {.user = user_, .ranked = ranked_, .event_ids = event_id_views_};
  }

  Judgement& judgement_;
  const std::string user_;
  std::optional<Instant> at_;  // when the picks are shown; none: when they are judged
  std::vector<PickNames> names_;
  std::vector<Candidate> ranked_;  // of names_
  const std::vector<std::string> event_ids_;
  const std::vector<std::string_view> event_id_views_;
  SharedPage page_;
  Picks picks_;
  Reason reason_ = Reason::kPassed;
  Callback callback_;
};

}  // namespace fcap::checker
