#include <exception>
#include <utility>

#include <fcap/checker.h>

#include "checker/core.h"
#include "checker/option_check.h"

namespace fcap {

class Checker::Impl final : public checker::Core {
 public:
  using Core::Core;
};

Checker::Checker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Checker::~Checker() {
  if (impl_->must_leak()) {
    static_cast<void>(impl_.release());
  }
}

Result<std::unique_ptr<Checker>> Checker::create(CheckerOptions options) {
  if (Status status = checker::check_options(options); !status.ok()) return status;
  std::shared_ptr<Store> store = options.store;
  if (store == nullptr) {
    if (!options.redis.log) options.redis.log = options.log;
    Result<std::unique_ptr<Store>> made = make_redis_store(options.redis);
    if (!made.ok()) return made.status();
    store = std::move(made).value();
  }
  try {
    options.store = nullptr;  // one owner, so that the Checker decides when the store ends
    auto impl = std::make_unique<Impl>(std::move(options), std::move(store));
    if (Status status = impl->start_sources(); !status.ok()) return status;
    return std::unique_ptr<Checker>(new Checker(std::move(impl)));
  } catch (const std::exception& failure) {
    return Status::error(StatusCode::kInternal,
                         std::string("the Checker could not be made: ") + failure.what(), true);
  }
}

CheckResult Checker::check(std::string_view user, std::span<const Candidate> candidates,
                           const CheckOptions& options) noexcept {
  return impl_->check(user, candidates, options);
}

std::vector<CheckResult> Checker::check_batch(std::span<const UserCandidates> users,
                                              const CheckOptions& options) noexcept {
  return impl_->check_batch(users, options);
}

PickResult Checker::first_allowed(std::string_view user, std::span<const Candidate> ranked,
                                  std::size_t k, const CheckOptions& options) noexcept {
  return impl_->first_allowed(user, ranked, k, options);
}

void Checker::check_async(std::string_view user, std::span<const Candidate> candidates,
                          const CheckOptions& options, Callback callback) noexcept {
  impl_->check_async(user, candidates, options, std::move(callback));
}

bool Checker::note_shown(std::string_view user, const Candidate& shown, std::string_view event_id,
                         std::optional<Instant> at) noexcept {
  return impl_->note_shown(user, shown, event_id, at);
}

void Checker::set_rules(std::shared_ptr<const RuleSet> rules) noexcept {
  impl_->set_rules(std::move(rules));
}

std::shared_ptr<const RuleSet> Checker::rules() const noexcept {
  return impl_->rules();
}

void Checker::set_segments(std::shared_ptr<const SegmentSet> segments) noexcept {
  impl_->set_segments(std::move(segments));
}

std::shared_ptr<const SegmentSet> Checker::segments() const noexcept {
  return impl_->segments();
}

CheckerStats Checker::stats() const noexcept {
  return impl_->stats();
}

}  // namespace fcap
