#include "redis/sentinels.h"

#include <algorithm>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "redis/sentinel_questions.h"

namespace fcap::redis {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAskSentinelsEvery{1000};
constexpr double kShortestShare = 0.75;
constexpr double kShareSpread = 0.5;

std::string text_of(const Endpoints& endpoints) {
  return endpoints.empty() ? std::string() : endpoints.front().text();
}

}  // namespace

Sentinels::Sentinels(const RedisOptions& options, std::vector<Address> sentinels,
                     CredentialsNow credentials, Report report, std::function<void()> changed)
    : options_(options),
      sentinels_(std::move(sentinels)),
      report_(std::move(report)),
      changed_(std::move(changed)),
      jitter_(base::seeded_jitter(static_cast<std::uint64_t>(
          Clock::now().time_since_epoch().count() ^
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(this))))),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      session_(
          [&options, now = std::move(credentials)] {
            const Credentials::Current current = now();
            return NodeSession::Account{options.sentinel_user, current.sentinel_password,
                                        current.tls};
          },
          stop_fd_),
      names_(options.thread_started, stop_fd_) {}

Sentinels::~Sentinels() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_fd_, &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
  session_.close();
  close_descriptors();
}

void Sentinels::close_descriptors() noexcept {
  session_.abandon();
  if (stop_fd_ >= 0) ::close(std::exchange(stop_fd_, -1));
}

Status Sentinels::start() {
  if (stop_fd_ < 0) return Status::error(StatusCode::kInternal, "cannot make an eventfd", true);
  auto started = base::start_thread(
      "fcap-sentinel", [this] { run(); }, options_.thread_started);
  if (!started.ok()) return started.status();
  thread_ = std::move(started).value();
  return {};
}

void Sentinels::find(Callback callback) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(callback));
  }
  wake_.notify_all();
}

void Sentinels::doubt() {
  doubted_.store(true, std::memory_order_relaxed);
}

bool Sentinels::is_master(const std::string& endpoint) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(master_,
                             [&](const Endpoint& known) { return known.text() == endpoint; });
}

std::string Sentinels::master_text() const {
  const std::lock_guard lock(mutex_);
  return text_of(master_);
}

std::string Sentinels::master_host() const {
  const std::lock_guard lock(mutex_);
  return master_host_;
}

std::string Sentinels::sentinel_text() const {
  const std::lock_guard lock(mutex_);
  return sentinel_;
}

void Sentinels::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    std::vector<Callback> waiting = std::exchange(waiting_, {});
    lock.unlock();
    const auto found = ask_all();
    if (!is_stopping()) take(found);
    const auto pause = std::chrono::duration_cast<Clock::duration>(
        kAskSentinelsEvery * (kShortestShare + kShareSpread * jitter_()));
    lock.lock();
    if (stopping_) return;
    // Under the mutex, so that the destructor knows that none is running.
    for (const Callback& callback : waiting) callback(found);
    if (options_.replica_reads != RedisReplicaReads::kNever) {
      lock.unlock();
      ask_replicas();
      lock.lock();
    }
    wake_.wait_for(lock, pause, [this] { return stopping_ || !waiting_.empty(); });
  }
}

Result<Endpoints> Sentinels::ask_all() {
  if (doubted_.exchange(false, std::memory_order_relaxed) && sentinels_.size() > 1) {
    session_.close();
    first_ = (first_ + 1) % sentinels_.size();
  }
  std::string failures;
  for (std::size_t i = 0; i < sentinels_.size(); ++i) {
    const std::size_t index = (first_ + i) % sentinels_.size();
    const auto address = ask(index);
    if (address.ok()) {
      first_ = index;
      {
        const std::lock_guard lock(mutex_);
        sentinel_ = sentinels_[index].text;
        master_host_ = address.value().host;
      }
      return names_.look_up(address.value(), Clock::now() + options_.connect_timeout);
    }
    session_.close();
    if (!failures.empty()) failures += "; ";
    failures += sentinels_[index].text + ": " + address.status().text();
  }
  return Status::error(StatusCode::kUnavailable, "no Sentinel tells the master: " + failures, true);
}

Result<Address> Sentinels::ask(std::size_t index) {
  const TimePoint until = Clock::now() + options_.connect_timeout;
  if (session_.is_open()) {
    auto answered = ask_master(session_, options_.sentinel_master, until);
    if (answered.ok()) return answered;
    // The Sentinel may have closed a connection that was idle or whose user has changed.
  }
  const auto endpoints = names_.look_up(sentinels_[index], until);
  if (!endpoints.ok()) return endpoints.status();
  if (Status opened = session_.open(endpoints.value(), sentinels_[index].host, until); !opened.ok())
    return opened;
  return ask_master(session_, options_.sentinel_master, until);
}

std::vector<KnownReplica> Sentinels::replicas() const {
  const std::lock_guard lock(mutex_);
  return replicas_;
}

void Sentinels::ask_replicas() {
  if (!session_.is_open()) return;
  const TimePoint until = Clock::now() + options_.connect_timeout;
  const auto named = redis::ask_replicas(session_, options_.sentinel_master, until);
  if (!named.ok()) {
    if (!is_stopping()) report_(LogLevel::kWarning, named.status().text());
    return;
  }
  std::vector<KnownReplica> replicas;
  for (const Address& address : named.value()) {
    const auto endpoints = names_.look_up(address, until);
    if (endpoints.ok()) replicas.push_back({endpoints.value().front(), address.host});
  }
  const std::lock_guard lock(mutex_);
  replicas_ = std::move(replicas);
}

bool Sentinels::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void Sentinels::take(const Result<Endpoints>& found) {
  if (!found.ok()) return report_(LogLevel::kWarning, found.status().text());
  std::string before;
  const std::string now = text_of(found.value());
  {
    const std::lock_guard lock(mutex_);
    before = text_of(master_);
    master_ = found.value();
    if (before == now) return;
  }
  changes_.fetch_add(1, std::memory_order_acq_rel);
  if (before.empty()) return;
  report_(LogLevel::kInfo, "the Sentinels name " + now + " as the master now, after " + before);
  changed_();
}

}  // namespace fcap::redis
