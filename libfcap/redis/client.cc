#include "redis/client.h"

#include <utility>
#include <vector>

#include <unistd.h>

#include "base/file_stamp.h"
#include "base/outside_text.h"
#include "redis/cluster_client.h"
#include "redis/direct_connections.h"
#include "redis/io_thread.h"
#include "redis/redis_options_check.h"
#include "redis/sentinels.h"

namespace fcap::redis {

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the shared state is aligned
class Client::ClientThreads {
 public:
  explicit ClientThreads(RedisOptions options)
      : shared_(std::move(options)), resolver_(shared_.options.thread_started) {}

  Status start(std::vector<Address> addresses) {
    Address address = addresses.front();
    if (shared_.options.topology == RedisTopology::kSentinel) {
      address = {};
      address.text = shared_.options.sentinel_master;
      make_sentinels(std::move(addresses));
    } else if (shared_.options.topology == RedisTopology::kCluster) {
      cluster_ =
          std::make_unique<ClusterClient>(shared_, resolver_, threads_, std::move(addresses));
    }
    for (std::size_t i = 0; i < shared_.options.io_threads; ++i) {
      auto made = IoThread::create(shared_, resolver_, address, i == 0);
      if (!made.ok()) return made.status();
      threads_.push_back(std::move(made).value());
    }
    Status read = shared_.credentials.start(
        shared_.options, [this](const std::string& problem) { on_credentials(problem); });
    if (!read.ok()) return read;
    tell_of_readers();
    if (sentinels_ != nullptr) {
      if (Status started = sentinels_->start(); !started.ok()) return started;
    }
    if (cluster_ != nullptr) {
      if (Status started = cluster_->start(); !started.ok()) return started;
    }
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (Status started = threads_[i]->start(i); !started.ok()) return started;
    }
    return {};
  }

  void stop() {
    shared_.credentials.stop();
    shared_.stopping.store(true, std::memory_order_release);
    for (auto& thread : threads_) thread->wake();
    for (auto& thread : threads_) thread->join();
    // A callback on one thread may have submitted to another that had ended already.
    for (auto& thread : threads_) thread->drain();
    if (cluster_ != nullptr) cluster_->stop();
  }

  void close_descriptors() noexcept {
    shared_.credentials.close_descriptors();
    if (sentinels_ != nullptr) sentinels_->close_descriptors();
    if (cluster_ != nullptr) cluster_->close_descriptors();
    for (auto& thread : threads_) thread->close_descriptors();
  }

  void submit(Request& request) noexcept {
    // By slot, so that requests about one key keep their order.
    IoThread& thread = *threads_[request.slot % threads_.size()];
    if (cluster_ != nullptr) return cluster_->submit(thread, request);
    const Link& link = thread.link();
    const auto refusal = link.refusal();
    if (refusal && !(request.may_be_stale && link.reads_replica())) {
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

  bool read(std::string_view key, std::chrono::steady_clock::time_point deadline,
            StoreCompletion& done) noexcept {
    if (cluster_ != nullptr) return cluster_->read(key, deadline, done);
    const Link& link = threads_.front()->link();
    // With several under way, the I/O thread is awake, and gathers them into fewer commands.
    const std::size_t others = shared_.operations.load(std::memory_order_relaxed);
    return link.direct() != nullptr && others < shared_.options.direct_connections &&
           !link.refusal() && !link.reads_replica() && link.direct()->read(key, deadline, done);
  }
  void stop_reads() noexcept {
    shared_.direct_stopping.store(true);
    threads_.front()->wake();
  }

  [[nodiscard]] std::size_t connections_per_node() const noexcept { return threads_.size(); }
  [[nodiscard]] ClusterClient* cluster() const noexcept { return cluster_.get(); }
  [[nodiscard]] std::size_t operations_max() const noexcept {
    return shared_.options.queue_operations_max;
  }
  [[nodiscard]] bool may_read_replicas() const noexcept {
    return shared_.options.replica_reads != RedisReplicaReads::kNever;
  }
  [[nodiscard]] std::uint64_t epoch() const noexcept {
    return shared_.epoch.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t epoch(std::uint16_t slot) const noexcept {
    return cluster_ != nullptr ? cluster_->epoch(slot) : epoch();
  }
  [[nodiscard]] bool connected() const noexcept {
    if (cluster_ != nullptr) return cluster_->connected();
    return shared_.links_ready.load(std::memory_order_relaxed) == threads_.size();
  }
  [[nodiscard]] std::string last_error() const {
    const std::lock_guard lock(shared_.error_mutex);
    return base::one_line(shared_.last_error);
  }
  [[nodiscard]] std::optional<Instant> missing_before() const noexcept {
    return shared_.missing.latest();
  }
  [[nodiscard]] std::optional<Instant> missing_before(std::uint16_t slot) const noexcept {
    return shared_.missing.of_slot(slot);
  }
  [[nodiscard]] WriteTerms write_terms() const noexcept {
    const auto value = [](const auto& known) { return known.load(std::memory_order_relaxed); };
    WriteTerms terms;
    terms.are_known = value(shared_.config_read);
    terms.reservation_life_max = std::chrono::milliseconds{value(shared_.reservation_life_max_ms)};
    terms.record_bytes_max = value(shared_.record_bytes_max);
    terms.has_clock = true;
    terms.clock_difference = shared_.clock_difference();
    return terms;
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
    health.reads_replica = value(shared_.replicas_read) != 0;
    health.timeouts = value(shared_.timeouts);
    health.failures = value(shared_.failures);
    const std::lock_guard lock(shared_.error_mutex);
    health.last_error = shared_.latest_error;
    health.last_error_at = shared_.latest_error_at;
    health.role = shared_.facts.role;
    health.replica_link_up = shared_.facts.replica_link_up;
    health.role_text = shared_.facts.role_text;
    health.clock_difference = shared_.clock_difference();
    health.clock_text = shared_.facts.clock_text;
    health.config_state = shared_.config.state();
    health.config_text = shared_.config.text();
    if (const auto before = missing_before(); before != kAnyEvent) health.missing_before = before;
    if (const std::size_t slots = slots_missing(); slots > 0) {
      health.more.emplace_back("missing_slots", std::to_string(slots));
    }
    if (sentinels_ != nullptr) {
      health.more.emplace_back("master", sentinels_->master_text());
      health.more.emplace_back("sentinel", sentinels_->sentinel_text());
    }
    if (may_read_replicas()) {
      if (cluster_ == nullptr) health.more.emplace_back("replica", shared_.replica_text);
      health.more.emplace_back("replica_reads", std::to_string(value(shared_.replica_reads)));
    }
    if (const auto tls = shared_.credentials.current().tls) {
      health.more.emplace_back("tls_handshakes", std::to_string(tls->handshakes()));
      health.more.emplace_back("tls_resumed", std::to_string(tls->resumed()));
    }
    health.more.emplace_back("own_stalls", std::to_string(value(shared_.own_stalls)));
    if (cluster_ != nullptr) {
      cluster_->add_health(health);
    } else if (const DirectConnections* const direct = threads_.front()->link().direct()) {
      health.more.emplace_back("direct_reads", std::to_string(direct->reads()));
    }
    // What servers say, and the names that Sentinels and nodes give each other.
    for (std::string* const text :
         {&health.last_error, &health.role_text, &health.clock_text, &health.config_text}) {
      *text = base::one_line(*text);
    }
    for (auto& [name, text] : health.more) text = base::one_line(text);
    return health;
  }
  void expect_config(const ExpectedConfig& expected) {
    {
      const std::lock_guard lock(shared_.error_mutex);
      shared_.config.expect(expected);
      shared_.publish_config();
    }
    shared_.config_generation.fetch_add(1, std::memory_order_release);
    for (auto& thread : threads_) thread->wake();
  }
  [[nodiscard]] pid_t owner() const noexcept { return owner_; }

  void keep(std::shared_ptr<void> kept) {
    const std::lock_guard lock(kept_mutex_);
    kept_.push_back(std::move(kept));
  }

 private:
  // How many slots the open gaps concern; 0: all of them, or there is no gap. With error_mutex.
  [[nodiscard]] std::size_t slots_missing() const {
    SlotSet slots;
    for (const MissingEvents& events : shared_.config.missing()) slots |= events.slots;
    return slots == SlotSet::all() ? 0 : slots.size();
  }

  // Warns of files that every account can read. They are not refused, because secrets that
  // Kubernetes mounts are readable like that unless defaultMode says otherwise.
  void tell_of_readers() const {
    const RedisOptions& options = shared_.options;
    const RedisTls& tls = options.tls;
    const std::string& key = tls.key_file.empty() ? tls.certificate_file : tls.key_file;
    for (const std::string& path : {options.password_file, options.sentinel_password_file, key}) {
      if (path.empty() || !base::is_readable_by_all(path)) continue;
      shared_.log(LogLevel::kWarning,
                  "redis: every account of this machine can read the secret in \"" + path +
                      "\": take that right away (chmod o=)");
    }
  }

  void make_sentinels(std::vector<Address> addresses) {
    const auto report = [this](LogLevel level, const std::string& text) {
      const std::string line = "redis " + shared_.options.sentinel_master + ": " + text;
      if (level == LogLevel::kWarning) shared_.note_error(line);
      shared_.log_thinned(level, line);
    };
    const auto changed = [this] {
      for (auto& thread : threads_) thread->wake();
    };
    const auto credentials = [this] { return shared_.credentials.current(); };
    sentinels_ = std::make_unique<Sentinels>(shared_.options, std::move(addresses), credentials,
                                             report, changed);
    shared_.sentinels = sentinels_.get();
  }

  // On the thread of the files.
  void on_credentials(const std::string& problem) {
    if (problem.empty()) {
      shared_.log(LogLevel::kInfo,
                  "redis: the password or a certificate has changed: connections "
                  "are made again");
      for (auto& thread : threads_) thread->wake();
    } else {
      shared_.log_thinned(LogLevel::kWarning, problem + ": what was read before stays in use");
    }
  }

  std::mutex kept_mutex_;
  std::vector<std::shared_ptr<void>> kept_;  // guarded by kept_mutex_; destroyed last
  const pid_t owner_ = getpid();
  SharedState shared_;
  std::unique_ptr<ClusterClient> cluster_;  // null with other topologies; the links use it
  // Declared before those whose callbacks use the links, so that these are destroyed first.
  std::vector<std::unique_ptr<IoThread>> threads_;
  Resolver resolver_;
  std::unique_ptr<Sentinels> sentinels_;
};

Result<std::unique_ptr<Client>> Client::create(RedisOptions options) {
  auto addresses = check_options(options);
  if (!addresses.ok()) return addresses.status();
  options.log = base::one_line_log(std::move(options.log));
  // Its destructor ends what has been started where the rest fails or throws.
  std::unique_ptr<Client> client(new Client(std::make_unique<ClientThreads>(std::move(options))));
  const Status started = client->impl_->start(std::move(addresses).value());
  if (!started.ok()) return started;
  return client;
}

Client::Client(std::unique_ptr<ClientThreads> impl) : impl_(std::move(impl)) {}

Client::~Client() {
  if (impl_->owner() == getpid()) {
    impl_->stop();
    return;
  }
  // A forked child: the threads do not exist here, so there is nothing to join, and what they held
  // when the parent forked may be inconsistent and must not be destroyed.
  impl_->close_descriptors();
  [[maybe_unused]] const ClientThreads* leaked = impl_.release();
}

void Client::submit(Request& request) noexcept {
  impl_->submit(request);
}

bool Client::read(std::string_view key, std::chrono::steady_clock::time_point deadline,
                  StoreCompletion& done) noexcept {
  return impl_->read(key, deadline, done);
}

void Client::stop_reads() noexcept {
  impl_->stop_reads();
}

std::size_t Client::connections_per_node() const noexcept {
  return impl_->connections_per_node();
}

bool Client::is_cluster() const noexcept {
  return impl_->cluster() != nullptr;
}

std::size_t Client::route_of(std::uint16_t slot) const noexcept {
  return impl_->cluster()->route_of(slot);
}

bool Client::may_read_replicas() const noexcept {
  return impl_->may_read_replicas();
}

std::size_t Client::operations_max() const noexcept {
  return impl_->operations_max();
}

std::uint64_t Client::connection_epoch() const noexcept {
  return impl_->epoch();
}

std::uint64_t Client::connection_epoch(std::uint16_t slot) const noexcept {
  return impl_->epoch(slot);
}

std::optional<std::uint16_t> Client::node_at(std::string_view address) const {
  return impl_->cluster() != nullptr ? impl_->cluster()->node_at(address) : std::nullopt;
}

std::uint64_t Client::node_epoch(std::uint16_t node) const noexcept {
  return impl_->cluster() != nullptr ? impl_->cluster()->epoch_of_node(node) : 0;
}

std::vector<ClusterShard> Client::shards() const {
  return impl_->cluster() != nullptr ? impl_->cluster()->shards() : std::vector<ClusterShard>{};
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

std::optional<Instant> Client::missing_before(std::uint16_t slot) const noexcept {
  return impl_->missing_before(slot);
}

WriteTerms Client::write_terms() const noexcept {
  return impl_->write_terms();
}

void Client::expect_config(const ExpectedConfig& expected) {
  impl_->expect_config(expected);
}

void Client::keep(std::shared_ptr<void> kept) {
  impl_->keep(std::move(kept));
}

}  // namespace fcap::redis
