#include "checker/pages.h"

#include <memory>
#include <utility>

#include "base/caller_state.h"
#include "checker/shared_page.h"

namespace fcap::checker {
namespace {

CheckOptions options_of(const ReserveAsk& ask) noexcept {
  return {.deadline = ask.deadline, .now = ask.now, .segments = ask.segments};
}

}  // namespace

// Answers a shared page that is not judged at all, and so has no picks: its ids are invalid, or
// there is no memory.
PagePicks Pages::refused(const ReserveAsk& ask, Reason reason) noexcept {
  Picks none;
  parts_.judgement.pick_refused(ask.ranked.size(), 0, reason, none);
  parts_.counters.add(CheckerCounter::checks);
  parts_.counters.add(CheckerCounter::candidates, none.judged);
  parts_.counters.add_unjudged(reason);
  parts_.counters.add(CheckerCounter::checks_answered);
  PagePicks page;
  page.reason = reason;
  try {
    page.picks.resize(ask.event_ids.size());
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory
  }
  return page;
}

PagePicks Pages::pick(const PageRequest& page, const PageOptions& options) noexcept {
  const ReserveAsk ask = ReserveAsk::of(page, options);
  return page.promise == Promise::kShared ? pick_shared(ask) : reserving_.pick(ask);
}

PagePicks Pages::pick_shared(const ReserveAsk& ask) noexcept {
  // Until the picks are shared, which is after the check has ended.
  const base::CallerState caller;
  CountedCall inside(parts_.counters);
  inside.submitted();
  if (!ask.has_valid_ids()) return refused(ask, Reason::kInvalid);
  std::optional<SharedPage> page;
  try {
    page.emplace(parts_.judgement, sharing_, ask.event_ids.size());
  } catch (...) {  // no memory
    return refused(ask, Reason::kOverloaded);
  }
  CheckOptions options = options_of(ask);
  try {
    options.now = parts_.judgement.instant_of(options);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the host's clock; the check says so
  }
  const PickResult picked =
      blocking_.first_allowed(ask.user, ask.ranked, ask.event_ids.size(), options);
  return page->share(ask, options.now, picked);
}

CallbackChecks::HeldRead Pages::begin_shared(const ReserveAsk& ask,
                                             AsyncPick::Callback callback) noexcept {
  CountedCall inside(parts_.counters);
  inside.submitted();
  std::unique_ptr<AsyncPick> pick;
  try {
    pick = std::make_unique<AsyncPick>(parts_.judgement, sharing_, ask, std::move(callback));
  } catch (...) {  // no memory
    async_.give(callback, refused(ask, Reason::kOverloaded));
    return nullptr;
  }
  return async_.pick_async(std::move(pick), ask, options_of(ask));
}

template <typename Callback>
Pages::Begun Pages::begin(const PageRequest& page, const PageOptions& options,
                          Callback callback) noexcept {
  const ReserveAsk ask = ReserveAsk::of(page, options);
  if (page.promise == Promise::kShared) return {begin_shared(ask, std::move(callback)), {}};
  return {nullptr, async_reserving_.begin(ask, std::move(callback))};
}

void Pages::start(const PageRequest& page, const PageOptions& options,
                  Checker::PageCallback callback) noexcept {
  static_cast<void>(begin(page, options, std::move(callback)));
}

std::vector<PagePicks> Pages::batch(std::span<const PageRequest> pages,
                                    const PageOptions& options) noexcept {
  // The batch counts as a call itself, so that the Checker stays between two pages, and while
  // missing answers are cut off.
  CountedCall inside(parts_.counters);
  inside.submitted();
  const auto start = [&](std::size_t i, const BatchSlot<PagePicks>& slot) {
    return begin(pages[i], options, slot);
  };
  const auto cut_off = [this](const Begun& begun) {
    if (begun.shared) async_.cut_off(*begun.shared);
    async_reserving_.cut_off(begun.reserved);
  };
  auto results = answer_all<PagePicks>(
      pages.size(), parts_.judgement.deadline_of({.deadline = options.deadline}), start, cut_off);
  if (results.size() < pages.size()) count_overloaded(pages);
  return results;
}

// Not even an answer could be made for these.
void Pages::count_overloaded(std::span<const PageRequest> pages) noexcept {
  for (const PageRequest& page : pages) {
    if (page.promise == Promise::kReserved) {
      async_reserving_.count_overloaded(1);
      continue;
    }
    parts_.counters.add(CheckerCounter::checks);
    parts_.counters.add_unjudged(Reason::kOverloaded);
    parts_.counters.add(CheckerCounter::checks_answered);
  }
}

}  // namespace fcap::checker
