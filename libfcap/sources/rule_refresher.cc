#include "sources/rule_refresher.h"

#include <utility>

#include "base/background_thread.h"
#include "sources/refresh_loop.h"

namespace fcap::sources {

class RuleRefresher::RuleThread {
 public:
  RuleThread(RuleSourceOptions options, RuleSet::Options build_options, Sink sink, LogCallback log,
             ThreadCallback thread_started)
      : thread_started_(std::move(thread_started)),
        loop_(std::move(options), build_options, std::move(sink), std::move(log),
              thread_.events()) {}
  ~RuleThread() { stop(); }
  RuleThread(const RuleThread&) = delete;
  RuleThread& operator=(const RuleThread&) = delete;

  Status start(std::chrono::milliseconds wait) {
    if (Status status = loop_.check_options(); !status.ok()) return status;
    Status status = thread_.start(
        "fcap-rules", [this, wait] { loop_.run(wait); }, thread_started_);
    return status.ok() ? loop_.wait_for_first_round(wait) : status;
  }

  void stop() noexcept { thread_.stop(); }
  void poke() noexcept { thread_.wake(); }

  [[nodiscard]] RefreshState state() const { return loop_.state(); }

 private:
  const ThreadCallback thread_started_;
  base::BackgroundThread thread_;  // stopped before the loop goes
  RefreshLoop loop_;
};

RuleRefresher::RuleRefresher(RuleSourceOptions options, RuleSet::Options build_options, Sink sink,
                             LogCallback log, ThreadCallback thread_started)
    : impl_(std::make_unique<RuleThread>(std::move(options), build_options, std::move(sink),
                                         std::move(log), std::move(thread_started))) {}

RuleRefresher::~RuleRefresher() = default;

Status RuleRefresher::start(std::chrono::milliseconds wait) {
  return impl_->start(wait);
}

void RuleRefresher::stop() noexcept {
  impl_->stop();
}

void RuleRefresher::poke() noexcept {
  impl_->poke();
}

RefreshState RuleRefresher::state() const {
  return impl_->state();
}

}  // namespace fcap::sources
