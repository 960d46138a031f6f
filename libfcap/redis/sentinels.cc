#include "redis/sentinels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "redis/sentinel_questions.h"

namespace fcap::redis {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAskSentinelsEvery{1000};
constexpr std::chrono::seconds kSilentPause{10};
constexpr double kShortestShare = 0.75;
constexpr double kShareSpread = 0.5;

std::string text_of(const Endpoints& endpoints) {
  return endpoints.empty() ? std::string() : endpoints.front().text();
}

std::string text_of(const std::optional<std::uint64_t>& epoch) {
  return epoch ? std::to_string(*epoch) : "unknown";
}

}  // namespace

Sentinels::Sentinels(const RedisOptions& options, std::vector<Address> sentinels,
                     CredentialsNow credentials, Report report, std::function<void()> changed)
    : options_(options),
      report_(std::move(report)),
      changed_(std::move(changed)),
      jitter_(base::seeded_jitter(static_cast<std::uint64_t>(
          Clock::now().time_since_epoch().count() ^
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(this))))),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      answers_(sentinels.size()),
      names_(options.thread_started, stop_fd_) {
  const NodeSession::AccountNow account = [&options, now = std::move(credentials)] {
    const Credentials::Current current = now();
    return NodeSession::Account{options.sentinel_user, current.sentinel_password, current.tls};
  };
  for (Address& address : sentinels) {
    sentinels_.push_back(std::make_unique<Sentinel>(std::move(address), account, stop_fd_));
  }
}

Sentinels::~Sentinels() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_fd_, &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
  for (const auto& sentinel : sentinels_) sentinel->session.close();
  close_descriptors();
}

void Sentinels::close_descriptors() noexcept {
  for (const auto& sentinel : sentinels_) sentinel->session.abandon();
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
    const auto found = ask_next();
    if (!is_stopping()) note_master(found);
    const auto pause = std::chrono::duration_cast<Clock::duration>(
        kAskSentinelsEvery * (kShortestShare + kShareSpread * jitter_()));
    lock.lock();
    if (stopping_) return;
    // The mutex is held, so that no callback is running once the destructor has had it.
    for (const Callback& callback : waiting) callback(found);
    if (options_.replica_reads != RedisReplicaReads::kNever) {
      lock.unlock();
      ask_replicas();
      lock.lock();
    }
    wake_.wait_for(lock, pause, [this] { return stopping_ || !waiting_.empty(); });
  }
}

Result<Endpoints> Sentinels::ask_next() {
  std::string failures;
  agrees_ = nullptr;
  if (doubted_.exchange(false, std::memory_order_relaxed)) {
    answers_.doubt();
    // Those that were silent may be the ones that know the successor.
    for (const auto& sentinel : sentinels_) sentinel->silent_until = TimePoint::min();
  }
  const std::size_t count = sentinels_.size();
  // Those that were silent lately come last: to wait for them each time would delay the answer that
  // a link waits for.
  const TimePoint begin = Clock::now();
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < count; ++i) order.push_back((next_ + i) % count);
  std::stable_partition(order.begin(), order.end(), [&](std::size_t index) {
    return sentinels_[index]->silent_until <= begin;
  });
  for (const std::size_t index : order) {
    Sentinel& sentinel = *sentinels_[index];
    auto named = ask(sentinel);
    if (named.ok()) {
      next_ = (index + 1) % count;
      sentinel.silent_until = TimePoint::min();
      const std::size_t counts = note_answer(index, std::move(named).value());
      return names_.look_up(answers_.answer(counts).address,
                            Clock::now() + options_.connect_timeout);
    }
    sentinel.session.close();
    const TimePoint now = Clock::now();
    if (named.status().code() == StatusCode::kNotFound) {
      answers_.forget(index);
    } else {
      answers_.note_silence(index, now);
    }
    sentinel.silent_until = now + kSilentPause;
    if (!failures.empty()) failures += "; ";
    failures += sentinel.address.text + ": " + named.status().text();
  }
  return Status::error(StatusCode::kUnavailable, "no Sentinel tells the master: " + failures, true);
}

// Which Sentinel's answer counts.
std::size_t Sentinels::note_answer(std::size_t index, NamedMaster named) {
  const std::size_t counts = answers_.note_answer(index, std::move(named), Clock::now());
  const NamedMaster& mine = answers_.answer(index);
  const NamedMaster& best = answers_.answer(counts);
  {
    const std::lock_guard lock(mutex_);
    sentinel_ = sentinels_[counts]->address.text;
    master_host_ = best.address.host;
  }
  if (mine.address.text == best.address.text) {
    agrees_ = sentinels_[index].get();
  } else {
    report_(LogLevel::kInfo, "the Sentinel " + sentinels_[index]->address.text + " names " +
                                 mine.address.text + " as the master, and " +
                                 sentinels_[counts]->address.text + " names " + best.address.text +
                                 ", which counts (config-epochs " + text_of(mine.epoch) + " and " +
                                 text_of(best.epoch) + ")");
  }
  return counts;
}

Result<NamedMaster> Sentinels::ask(Sentinel& sentinel) {
  const TimePoint until = Clock::now() + options_.connect_timeout;
  if (sentinel.session.is_open()) {
    auto answered = ask_master(sentinel.session, options_.sentinel_master, until);
    if (answered.ok()) return answered;
    // The Sentinel may have closed a connection that was idle or whose user has changed.
  }
  const auto endpoints = names_.look_up(sentinel.address, until);
  if (!endpoints.ok()) return endpoints.status();
  if (Status opened = sentinel.session.open(endpoints.value(), sentinel.address.host, until);
      !opened.ok()) {
    return opened;
  }
  return ask_master(sentinel.session, options_.sentinel_master, until);
}

std::vector<KnownReplica> Sentinels::replicas() const {
  const std::lock_guard lock(mutex_);
  return replicas_;
}

void Sentinels::ask_replicas() {
  if (agrees_ == nullptr || !agrees_->session.is_open()) return;
  const TimePoint until = Clock::now() + options_.connect_timeout;
  const auto named = redis::ask_replicas(agrees_->session, options_.sentinel_master, until);
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

void Sentinels::note_master(const Result<Endpoints>& found) {
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
