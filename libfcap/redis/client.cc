#include "redis/client.h"

#include <utility>
#include <vector>

#include <unistd.h>

#include "redis/io_thread.h"
#include "redis/options_check.h"

namespace fcap::redis {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the shared state is aligned
class Client::Impl {
 public:
  explicit Impl(RedisOptions options)
      : shared_(std::move(options)), resolver_(shared_.options.thread_started) {}

  Status start(const Address& address) {
    for (std::size_t i = 0; i < shared_.options.io_threads; ++i) {
      auto made = IoThread::create(shared_, resolver_, address);
      if (!made.ok()) return made.status();
      threads_.push_back(std::move(made).value());
    }
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (Status started = threads_[i]->start(i); !started.ok()) return started;
    }
    return {};
  }

  void stop() {
    shared_.stopping.store(true, std::memory_order_release);
    for (auto& thread : threads_) thread->wake();
    for (auto& thread : threads_) thread->join();
    // A callback on one thread may have submitted to another that had ended already.
    for (auto& thread : threads_) thread->drain();
  }

  void close_descriptors() noexcept {
    for (auto& thread : threads_) thread->close_descriptors();
  }

  void submit(Request& request) noexcept {
    // By slot, so that requests about one key keep their order.
    IoThread& thread = *threads_[request.slot % threads_.size()];
    if (const auto refusal = thread.link(request.slot).refusal()) {
      request.on_done(*refusal);
      return;
    }
    if (shared_.operations.fetch_add(1, std::memory_order_relaxed) >=
        shared_.options.queue_operations_max) {
      shared_.operations.fetch_sub(1, std::memory_order_relaxed);
      request.on_done(TransportCode::kOverloaded);
      return;
    }
    thread.push(request);
  }

  [[nodiscard]] std::size_t lanes() const noexcept { return threads_.size(); }
  [[nodiscard]] std::size_t operations_max() const noexcept {
    return shared_.options.queue_operations_max;
  }
  [[nodiscard]] std::uint64_t epoch() const noexcept {
    return shared_.epoch.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool connected() const noexcept {
    return shared_.links_ready.load(std::memory_order_relaxed) == threads_.size();
  }
  [[nodiscard]] std::string last_error() const {
    const std::lock_guard lock(shared_.error_mutex);
    return shared_.last_error;
  }
  [[nodiscard]] std::optional<Instant> missing_before() const noexcept {
    const std::int64_t ms = shared_.missing_before_ms.load(std::memory_order_relaxed);
    return ms == SharedState::kNothingMissing ? std::nullopt : std::optional(instant_from_ms(ms));
  }
  [[nodiscard]] StoreHealth health() const {
    const auto value = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
    StoreHealth health;
    health.connected = connected();
    health.breaker_open = value(shared_.breakers_open) != 0;
    health.connections = value(shared_.connections);
    health.reconnects = value(shared_.reconnects);
    health.breaker_openings = value(shared_.breaker_openings);
    health.server_errors = value(shared_.server_errors);
    health.timeouts = value(shared_.timeouts);
    health.failures = value(shared_.failures);
    const std::lock_guard lock(shared_.error_mutex);
    health.last_error = shared_.latest_error;
    health.last_error_at = shared_.latest_error_at;
    health.role = shared_.facts.role;
    health.replica_link_up = shared_.facts.replica_link_up;
    health.role_text = shared_.facts.role_text;
    health.clock_difference = shared_.facts.clock_difference;
    health.config_state = shared_.config.state();
    health.config_text = shared_.config.text();
    health.missing_before = missing_before();
    health.more.emplace_back("own_stalls", std::to_string(value(shared_.own_stalls)));
    return health;
  }
  void expect_config(const ExpectedConfig& expected) {
    {
      const std::lock_guard lock(shared_.error_mutex);
      shared_.config.expect(expected);
    }
    shared_.config_epoch.fetch_add(1, std::memory_order_release);
    for (auto& thread : threads_) thread->wake();
  }
  [[nodiscard]] pid_t owner() const noexcept { return owner_; }

  void keep(std::shared_ptr<void> kept) {
    const std::lock_guard lock(kept_mutex_);
    kept_.push_back(std::move(kept));
  }

 private:
  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<void>> kept_;  // guarded by kept_mutex_; destroyed last
  const pid_t owner_ = getpid();
  SharedState shared_;
  // Declared before the resolver, whose callbacks use the links, so that the resolver is destroyed
  // first.
  std::vector<std::unique_ptr<IoThread>> threads_;
  Resolver resolver_;
};

Result<std::unique_ptr<Client>> Client::create(RedisOptions options) {
  auto address = check_options(options);
  if (!address.ok()) return address.status();
  auto impl = std::make_unique<Impl>(std::move(options));
  if (Status started = impl->start(address.value()); !started.ok()) {
    impl->stop();
    return started;
  }
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Client::~Client() {
  if (impl_->owner() == getpid()) {
    impl_->stop();
    return;
  }
  // A forked child: the threads do not exist here, so there is nothing to join, and what they held
  // when the parent forked may be inconsistent and must not be destroyed.
  impl_->close_descriptors();
  [[maybe_unused]] const Impl* leaked = impl_.release();
}

void Client::submit(Request& request) noexcept {
  impl_->submit(request);
}

std::size_t Client::lanes() const noexcept {
  return impl_->lanes();
}

std::size_t Client::operations_max() const noexcept {
  return impl_->operations_max();
}

std::uint64_t Client::connection_epoch() const noexcept {
  return impl_->epoch();
}

bool Client::connected() const noexcept {
  return impl_->connected();
}

std::string Client::last_error() const {
  return impl_->last_error();
}

StoreHealth Client::health() const {
  return impl_->health();
}

std::optional<Instant> Client::missing_before() const noexcept {
  return impl_->missing_before();
}

void Client::expect_config(const ExpectedConfig& expected) {
  impl_->expect_config(expected);
}

void Client::keep(std::shared_ptr<void> kept) {
  impl_->keep(std::move(kept));
}

}  // namespace fcap::redis
