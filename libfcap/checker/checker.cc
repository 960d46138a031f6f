#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include <fcap/checker.h>

#include "base/outside_text.h"
#include "checker/blocking_checks.h"
#include "checker/blocking_hard_calls.h"
#include "checker/callback_checks.h"
#include "checker/callback_hard_calls.h"
#include "checker/checker_options_check.h"
#include "checker/explaining.h"
#include "checker/followed_sources.h"
#include "checker/health.h"
#include "checker/pages.h"
#include "checker/scrape.h"
#include "checker/shared_note_writer.h"

namespace fcap {
namespace {

// How often the destructor looks whether the last caller and the last callback have left, and
// wait_ready() whether all is well. Callers do not tell, because then each check would have to look
// for somebody who waits.
constexpr std::chrono::microseconds kLeavePoll{50};
constexpr std::chrono::milliseconds kReadyPoll{5};

// Made while there is memory.
const Status no_memory =
    Status::error(StatusCode::kInternal, "cannot create the Checker: out of memory", true);

}  // namespace

// The parts of a Checker, in the order in which they need each other.
class Checker::Impl {  // NOLINT(clang-analyzer-optin.performance.Padding): that order counts
 public:
  // As Checker::create(). Throws std::bad_alloc.
  static Result<std::unique_ptr<Checker>> create(CheckerOptions options);
  // Throws std::bad_alloc. `store` is not null.
  Impl(CheckerOptions given, std::shared_ptr<Store> store, bool owns_store)
      : options(std::move(given)),
        gate(options),
        sources(options, gate, [this] { drop_rules(); }),
        judgement(options, gate, sources.current(), *store, counters),
        store_(std::move(store)),
        owns_store_(owns_store),
        direct_(store_->direct_reads()),
        blocking(parts()),
        explaining(parts()),
        async(parts()),
        reserving(parts()),
        sharing(parts()),
        async_reserving(parts(), async),
        pages(parts(), blocking, async, reserving, async_reserving, sharing) {}

  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Whether destroying it would hang or harm: in a forked child its threads do not exist and its
  // sockets are shared with the parent; inside a callback it would wait for itself.
  [[nodiscard]] bool must_leak() const noexcept {
    return gate.in_child() || gate.inside_callback();
  }
  /// The destructor waits for whoever holds a CountedCall. Throws std::bad_alloc.
  void add_health(CheckerHealth& health) const;

  const CheckerOptions options;
  checker::Counters counters;
  checker::Gate gate;
  checker::FollowedSources sources;
  checker::Judgement judgement;
  checker::Latency check_latency;
  checker::Latency store_latency;

 private:
  checker::SharedParts parts() {
    return {options,       gate,  judgement, counters, check_latency,
            store_latency, room_, *store_,   direct_};
  }
  [[nodiscard]] bool all_over() noexcept;
  void drop_rules() noexcept {
    blocking.drop_rules();
    async.drop_rules();
  }

  checker::VerdictRoom room_;
  std::shared_ptr<Store> store_;
  const bool owns_store_;
  redis::DirectReads* const direct_;  // of store_; null: it cannot

 public:
  checker::BlockingChecks blocking;
  checker::Explaining explaining;
  checker::CallbackChecks async;
  checker::BlockingHardCalls reserving;
  checker::SharedNoteWriter sharing;
  checker::CallbackHardCalls async_reserving;
  checker::Pages pages;
};

Checker::Impl::~Impl() {
  gate.close();
  sources.stop_following();
  using checker::CheckerCounter;
  // A call that began before may still be on its way to the store: a callback may start the next
  // check, and the store's threads run callbacks until the store has ended. A call that begins from
  // here on sees that the Gate is closed.
  if (owns_store_ && direct_ != nullptr) direct_->stop_reads();
  while (!counters.all_submitted()) std::this_thread::sleep_for(kLeavePoll);
  // The store that the Checker made ends here and completes all it has; a store of the host's may
  // live on, and what it still has is answered below.
  store_.reset();
  async.stop();
  while (!all_over()) std::this_thread::sleep_for(kLeavePoll);
  sources.stop_freeing();
}

// Answers what is pending. True if nothing is left: no call was inside that could have added to it,
// and none has begun while this looked.
bool Checker::Impl::all_over() noexcept {
  const std::uint64_t begun = counters.sum(checker::CheckerCounter::calls_begun);
  const bool nobody_inside = counters.all_ended();
  const bool no_hard_calls = async_reserving.stop();
  const bool no_checks = async.answer_pending();
  return nobody_inside && no_hard_calls && no_checks &&
         counters.sum(checker::CheckerCounter::calls_begun) == begun;
}

void Checker::Impl::add_health(CheckerHealth& health) const {
  sources.add_health(health);
  if (gate.closing()) {
    // The store may be gone already.
    health.store.connected = false;
    health.store.last_error = "the Checker is being destroyed";
  } else {
    health.store = store_->health();
  }
  checker::judge_health(health);
}

CheckHandle& CheckHandle::operator=(CheckHandle&& other) noexcept {
  std::swap(read_, other.read_);
  return *this;
}

CheckHandle::~CheckHandle() {
  if (read_ != nullptr) read_->drop_reference();
}

bool CheckHandle::cancel() noexcept {
  return read_ != nullptr && read_->cancel();
}

Checker::Checker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Checker::~Checker() {
  if (impl_->must_leak()) {
    static_cast<void>(impl_.release());
  }
}

Result<std::unique_ptr<Checker>> Checker::Impl::create(CheckerOptions options) {
  if (Status status = checker::check_options(options); !status.ok()) return status;
  options.log = base::one_line_log(std::move(options.log));
  std::shared_ptr<Store> store = options.store;
  const bool owns_store = store == nullptr;
  if (owns_store) {
    if (!options.redis.log) options.redis.log = options.log;
    Result<std::unique_ptr<Store>> made = make_redis_store(options.redis);
    if (!made.ok()) return made.status();
    store = std::move(made).value();
  }
  options.store = nullptr;  // one owner, so that the Checker decides when the store ends
  store->expect_config({.key_prefix = options.key_prefix,
                        .retention = options.retention,
                        .null_user_ids = options.null_user_ids});
  auto impl = std::make_unique<Impl>(std::move(options), std::move(store), owns_store);
  if (Status status = impl->async.start(); !status.ok()) return status;
  if (Status status = impl->sources.start(); !status.ok()) return status;
  return std::unique_ptr<Checker>(new Checker(std::move(impl)));
}

Result<std::unique_ptr<Checker>> Checker::create(CheckerOptions options) {
  try {
    return Impl::create(std::move(options));
  } catch (const std::bad_alloc&) {
    return no_memory;
  } catch (const std::exception& failure) {
    return Status::error(StatusCode::kInternal,
                         std::string("cannot create the Checker: ") + failure.what(), true);
  }
}

CheckResult Checker::check(const Subject& subject, std::span<const Candidate> candidates,
                           const CheckOptions& options) noexcept {
  return impl_->blocking.check(subject.user, candidates, options);
}

std::vector<CheckResult> Checker::check_batch(std::span<const CheckRequest> requests,
                                              const CheckOptions& options) noexcept {
  return impl_->blocking.check_batch(requests, options);
}

PickResult Checker::first_allowed(const Subject& subject, std::span<const Candidate> ranked,
                                  std::size_t k, const CheckOptions& options) noexcept {
  return impl_->blocking.first_allowed(subject.user, ranked, k, options);
}

Explanation Checker::explain(const Subject& subject, std::span<const Candidate> candidates,
                             const CheckOptions& options) noexcept {
  return impl_->explaining.explain(subject.user, candidates, options);
}

AsyncStart Checker::check_async(const Subject& subject, std::span<const Candidate> candidates,
                                const CheckOptions& options, Callback callback) noexcept {
  return impl_->async.check_async(subject.user, candidates, options, std::move(callback));
}

bool Checker::note_shown(const Impression& shown, Note note) noexcept {
  const checker::CountedCall inside(impl_->counters);
  const auto noted = impl_->judgement.note_shown(shown);
  if (!noted) return false;
  if (note == Note::kHere) return true;
  const std::string_view user = shown.subject.user;
  if (impl_->sharing.share(user, {&*noted, 1}, checker::SeenRecord::of(shown.after))) {
    impl_->judgement.mark_shared(user, *noted);
  }
  return true;
}

bool Checker::take_back_shown(const Impression& shown) noexcept {
  const checker::CountedCall inside(impl_->counters);
  std::optional<ledger::Entry> released;
  const bool taken_back = impl_->judgement.take_back_shown(shown, released);
  if (released) impl_->sharing.take_back(shown.subject.user, *released);
  return taken_back;
}

HardResult Checker::hard(const HardRequest& request, const HardOptions& options) noexcept {
  return impl_->reserving.call(request, options);
}

std::vector<HardResult> Checker::hard_batch(std::span<const HardRequest> requests,
                                            const HardOptions& options) noexcept {
  return impl_->async_reserving.batch(requests, options);
}

void Checker::hard_async(const HardRequest& request, const HardOptions& options,
                         HardCallback callback) noexcept {
  static_cast<void>(
      impl_->async_reserving.begin(checker::ReserveAsk::of(request, options), std::move(callback)));
}

PagePicks Checker::pick(const PageRequest& page, const PageOptions& options) noexcept {
  return impl_->pages.pick(page, options);
}

std::vector<PagePicks> Checker::pick_batch(std::span<const PageRequest> pages,
                                           const PageOptions& options) noexcept {
  return impl_->pages.batch(pages, options);
}

void Checker::pick_async(const PageRequest& page, const PageOptions& options,
                         PageCallback callback) noexcept {
  impl_->pages.start(page, options, std::move(callback));
}

void Checker::set_rules(std::shared_ptr<const RuleSet> rules) noexcept {
  const checker::CountedCall inside(impl_->counters);
  impl_->sources.set_rules(std::move(rules));
}

std::shared_ptr<const RuleSet> Checker::rules() const noexcept {
  const checker::CountedCall inside(impl_->counters);
  return impl_->sources.rules();
}

void Checker::set_segments(std::shared_ptr<const SegmentSet> segments) noexcept {
  const checker::CountedCall inside(impl_->counters);
  impl_->sources.set_segments(std::move(segments));
}

std::shared_ptr<const SegmentSet> Checker::segments() const noexcept {
  const checker::CountedCall inside(impl_->counters);
  return impl_->sources.segments();
}

CheckerStats Checker::stats() const noexcept {
  const checker::CountedCall inside(impl_->counters);
  CheckerStats stats;
  const checker::Counters& counters = impl_->counters;
  const std::uint64_t answered = counters.sum(checker::CheckerCounter::checks_answered);
  counters.copy_to(stats);
  stats.pending = stats.checks - answered;
  impl_->judgement.add_stats(stats);
  impl_->sources.add_stats(stats);
  impl_->async.add_stats(stats);
  impl_->sharing.add_stats(stats);
  stats.latency.check = impl_->check_latency.histogram();
  stats.latency.store = impl_->store_latency.histogram();
  return stats;
}

std::vector<ShadowCount> Checker::shadow_counts() const {
  const checker::CountedCall inside(impl_->counters);
  if (impl_->gate.in_child()) return {};  // no locks: their holders may not exist here
  return impl_->judgement.shadows().counts();
}

CheckerHealth Checker::health() const noexcept {
  const checker::CountedCall inside(impl_->counters);
  CheckerHealth health;
  if (impl_->gate.in_child()) return health;
  try {
    impl_->add_health(health);
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the texts
  }
  return health;
}

bool Checker::wait_ready(std::chrono::milliseconds timeout) const noexcept {
  const checker::CountedCall inside(impl_->counters);
  const auto begun = std::chrono::steady_clock::now();
  while (!health().ready) {
    const auto waited = std::chrono::steady_clock::now() - begun;
    // In milliseconds: the longest timeout there is does not fit into nanoseconds.
    const bool over = std::chrono::floor<std::chrono::milliseconds>(waited) >= timeout;
    if (over || impl_->gate.in_child() || impl_->gate.closing()) return false;
    std::this_thread::sleep_for(kReadyPoll);
  }
  return true;
}

Scrape::Scrape(const Checker& checker) {
  const checker::CountedCall inside(checker.impl_->counters);
  calls_begun = checker.impl_->counters.sum(checker::CheckerCounter::calls_begun);
  stats = checker.stats();
  health = checker.health();
  shadows = checker.shadow_counts();
}

}  // namespace fcap
