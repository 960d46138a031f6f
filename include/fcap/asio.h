#pragma once

#include <span>
#include <string_view>
#include <utility>

#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/dispatch.hpp>
#include <asio/execution/outstanding_work.hpp>
#include <asio/prefer.hpp>

#include <fcap/checker.h>

namespace fcap {

/// A Checker for hosts that run on Asio. This header is the only one that needs Asio (1.22 or
/// newer, standalone); libfcap itself does not know of it.
///
///     fcap::AsioChecker checker(io_context.get_executor(), *made.value());
///     fcap::CheckResult result = co_await checker.check("u123", candidates, asio::use_awaitable);
///
/// Any completion token will do: use_awaitable, use_future, deferred, a function that takes a
/// CheckResult. Where the handler has no executor of its own, it runs on the one given here, never
/// on a thread of fcap's and never inside the call that starts the check. A started check counts as
/// outstanding work, so that run() waits for its answer.
///
/// Lifetime: the Checker must outlive this object and all checks that were started through it. The
/// user, the candidates and the options' segments must live until the check is started: with
/// use_awaitable, until co_await. Thread safety: as the Checker's.
template <typename Executor>
class AsioChecker {
 public:
  using executor_type = Executor;

  AsioChecker(Executor executor, Checker& checker)
      : executor_(std::move(executor)), checker_(&checker) {}

  [[nodiscard]] executor_type get_executor() const noexcept { return executor_; }

  /// Checker::check() without blocking. Completes with a CheckResult and never with an error: a
  /// store that does not answer is a reason in the result.
  template <typename CompletionToken>
  auto check(std::string_view user, std::span<const Candidate> candidates,
             CompletionToken&& token) {
    return check(user, candidates, CheckOptions{}, std::forward<CompletionToken>(token));
  }

  template <typename CompletionToken>
  auto check(std::string_view user, std::span<const Candidate> candidates,
             const CheckOptions& options, CompletionToken&& token) {
    return asio::async_initiate<CompletionToken, void(CheckResult)>(
        Initiation{executor_, checker_}, token, user, candidates, options);
  }

 private:
  struct Initiation {
    using executor_type = Executor;

    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

    template <typename Handler>
    void operator()(Handler&& handler, std::string_view user, std::span<const Candidate> candidates,
                    const CheckOptions& options) const {
      auto runs_on = asio::prefer(asio::get_associated_executor(handler, executor),
                                  asio::execution::outstanding_work.tracked);
      checker->check_async(user, candidates, options,
                           [runs_on = std::move(runs_on),
                            handler = std::forward<Handler>(handler)](CheckResult result) mutable {
                             asio::dispatch(runs_on, [handler = std::move(handler),
                                                      result = std::move(result)]() mutable {
                               std::move(handler)(std::move(result));
                             });
                           });
    }

    Executor executor;
    Checker* checker;
  };

  Executor executor_;
  Checker* checker_;
};

}  // namespace fcap
