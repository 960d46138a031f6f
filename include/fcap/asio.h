#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/dispatch.hpp>
#include <asio/execution/outstanding_work.hpp>
#include <asio/prefer.hpp>

#include <fcap/asio_handlers.h>
#include <fcap/checker.h>

namespace fcap {

/// A Checker for hosts that run on Asio. Only this header and its part, asio_handlers.h, need Asio
/// (1.22 or newer, standalone); libfcap itself does not know of it.
///
///     fcap::AsioChecker checker(io_context.get_executor(), *made.value());
///     fcap::CheckResult result = co_await checker.check("u123", candidates, asio::use_awaitable);
///
/// Any completion token will do: use_awaitable, use_future, deferred, a function that takes a
/// CheckResult. Where the handler has no executor of its own, it runs on the one given here, never
/// on a thread of fcap's and never inside the call that starts the check. A started check counts as
/// outstanding work, so that run() waits for its answer.
///
/// Lifetime: the Checker and the io_context (or other execution context) may end in either order.
/// With the context, the handlers are destroyed that still wait, as those of its timers are; checks
/// that are pending when the Checker ends are answered kShutdown. No call may begin after that. The
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
  auto check(Subject subject, std::span<const Candidate> candidates, CompletionToken&& token) {
    return check(subject, candidates, CheckOptions{}, std::forward<CompletionToken>(token));
  }

  template <typename CompletionToken>
  auto check(Subject subject, std::span<const Candidate> candidates, const CheckOptions& options,
             CompletionToken&& token) {
    CheckOptions called_back = options;
    called_back.return_known = false;
    return starting<CheckResult>(
        [=, checker = checker_](auto done) {
          checker->check_async(subject, candidates, called_back, std::move(done));
        },
        token);
  }

  /// Checker::hard() without blocking; completes with a HardResult. What the request and the
  /// options refer to must live until it is started, as above.
  template <typename CompletionToken>
  auto hard(const HardRequest& request, const HardOptions& options, CompletionToken&& token) {
    return starting<HardResult>(
        [=, checker = checker_](auto done) {
          checker->hard_async(request, options, std::move(done));
        },
        token);
  }
  /// Checker::pick() without blocking; completes with PagePicks. What the page and the options
  /// refer to must live until it is started, as above.
  template <typename CompletionToken>
  auto pick(const PageRequest& page, const PageOptions& options, CompletionToken&& token) {
    return starting<PagePicks>(
        [=, checker = checker_](auto done) { checker->pick_async(page, options, std::move(done)); },
        token);
  }

 private:
  template <typename RunsOn, typename Handler>
  struct WaitingHandler final : AsioHandlers::Waiting {
    template <typename Given>
    WaitingHandler(RunsOn given_runs_on, Given&& given)
        : runs_on(std::move(given_runs_on)), handler(std::forward<Given>(given)) {}
    void drop() noexcept override {
      handler.reset();
      runs_on.reset();
    }

    std::optional<RunsOn> runs_on;
    std::optional<Handler> handler;
  };

  // What a callback of fcap's does: brings the answer to the handler's executor, if its context has
  // not ended meanwhile.
  template <typename Answer, typename Handler>
  static auto completing(const Executor& executor, Handler&& handler) {
    auto runs_on = asio::prefer(asio::get_associated_executor(handler, executor),
                                asio::execution::outstanding_work.tracked);
    std::shared_ptr<AsioHandlers> handlers = AsioHandlers::of(runs_on);
    auto waiting = std::make_shared<WaitingHandler<decltype(runs_on), std::decay_t<Handler>>>(
        std::move(runs_on), std::forward<Handler>(handler));
    handlers->add(waiting);
    return [handlers = std::move(handlers), waiting = std::move(waiting)](Answer answer) {
      handlers->answer(*waiting, [&] {
        asio::dispatch(*waiting->runs_on, [handler = std::move(*waiting->handler),
                                           answer = std::move(answer)]() mutable {
          std::move(handler)(std::move(answer));
        });
      });
    };
  }

  template <typename Start>
  struct Initiation {
    using executor_type = Executor;
    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }
    template <typename Handler>
    void operator()(Handler&& handler) const {
      start(completing<typename Start::answer_type>(executor, std::forward<Handler>(handler)));
    }
    Executor executor;
    Start start;
  };
  template <typename Answer, typename Call>
  struct Starting {
    using answer_type = Answer;
    template <typename Done>
    void operator()(Done&& done) const {
      call(std::forward<Done>(done));
    }
    Call call;
  };
  template <typename Answer, typename Call, typename CompletionToken>
  auto starting(Call call, CompletionToken& token) {
    using Start = Starting<Answer, Call>;
    return asio::async_initiate<CompletionToken, void(Answer)>(
        Initiation<Start>{executor_, Start{std::move(call)}}, token);
  }

  Executor executor_;
  Checker* checker_;
};

}  // namespace fcap
