#include "redis/cluster_watch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace fcap::redis {
namespace {

using Clock = std::chrono::steady_clock;

// How many known nodes are asked: if none of so many is of use, the seeds may know of newer ones.
constexpr std::size_t kKnownTriedMax = 8;
// How many answers of nodes one refresh looks at, known ones and seeds: when none of so many is
// believed, the nodes do not agree with each other yet.
constexpr std::size_t kAnswersMax = 3;

}  // namespace

ClusterWatch::ClusterWatch(const RedisOptions& options, std::vector<Address> seeds,
                           CredentialsNow credentials, NodeTable& nodes, SlotMap& map,
                           Report report, Take changed, Take refreshed)
    : options_(options),
      seeds_(std::move(seeds)),
      nodes_(nodes),
      map_(map),
      report_(std::move(report)),
      changed_(std::move(changed)),
      refreshed_(std::move(refreshed)),
      jitter_(base::seeded_jitter(static_cast<std::uint64_t>(
          Clock::now().time_since_epoch().count() ^
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(this))))),
      session_(
          [&options, now = std::move(credentials)] {
            const Credentials::Current current = now();
            return NodeSession::Account{options.user, current.password, current.tls};
          },
          thread_.events().stop),
      names_(options.thread_started, thread_.events().stop) {}

Status ClusterWatch::start() {
  return thread_.start(
      "fcap-cluster", [this] { run(); }, options_.thread_started);
}

void ClusterWatch::refresh_soon() noexcept {
  if (wanted_.load(std::memory_order_relaxed)) return;
  if (!wanted_.exchange(true, std::memory_order_acq_rel)) thread_.wake();
}

std::shared_ptr<const ClusterShape> ClusterWatch::shape() const {
  const std::lock_guard lock(mutex_);
  return shape_;
}

std::string ClusterWatch::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

std::string ClusterWatch::set_last_error(std::string text) {
  const std::lock_guard lock(mutex_);
  return std::exchange(last_error_, std::move(text));
}

void ClusterWatch::close_descriptors() noexcept {
  session_.abandon();
  thread_.close_descriptors();
}

void ClusterWatch::run() {
  while (wait_until_due()) {
    // Before asking: what turns out to be wrong from now on may not be in the answer yet.
    wanted_.store(false, std::memory_order_release);
    refresh();
  }
}

bool ClusterWatch::wait_until_due() {
  const base::LoopEvents events = thread_.events();
  for (;;) {
    const bool wanted = wanted_.load(std::memory_order_acquire);
    const TimePoint due = schedule_.due(wanted);
    const TimePoint now = Clock::now();
    if (is_stopping()) return false;
    if (now >= due) return true;
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(due - now);
    // While it is wanted, nothing but the time is waited for.
    pollfd polled[] = {{events.stop, POLLIN, 0}, {wanted ? -1 : events.wake, POLLIN, 0}};
    if (::poll(polled, 2, static_cast<int>(pause.count())) > 0 && polled[1].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(events.wake, &count, sizeof(count));
    }
  }
}

bool ClusterWatch::is_stopping() const noexcept {
  pollfd stop = {thread_.events().stop, POLLIN, 0};
  return ::poll(&stop, 1, 0) > 0;
}

// One turn of a refresh.
void ClusterWatch::refresh() {
  asked_at_.reset();
  Found found = ask_one_of(known_nodes(), false);
  if (found == Found::kNothing) found = ask_one_of(seeds_, true);
  const bool succeeded = found == Found::kShape;
  const std::string error =
      succeeded ? std::string() : "no node tells the cluster's slots: " + refresh_.refusals;
  // The pause begins when the node was asked, so that a silent node does not make it longer.
  const TimePoint at = asked_at_.value_or(Clock::now());
  if (found == Found::kNothingYet) {
    schedule_.goes_on(at, jitter_());
    // The map that there is may well be right; without one, nothing works, and why is to be told.
    if (believed_.shape()) return;
  } else {
    schedule_.ended(at, succeeded, jitter_());
    refresh_ = {};
  }
  if (is_stopping()) return;
  const std::string before = set_last_error(error);
  if (!succeeded) {
    report_(LogLevel::kWarning, error);
  } else if (!before.empty()) {
    report_(LogLevel::kInfo, "a node tells the cluster's slots again");
  }
}

ClusterWatch::Found ClusterWatch::ask_one_of(std::vector<Address> nodes, bool are_seeds) {
  Tried& tried = are_seeds ? refresh_.seeds : refresh_.known;
  const auto refused = [this](const Address& node, const Status& why) {
    if (!refresh_.refusals.empty()) refresh_.refusals += "; ";
    refresh_.refusals += node.text + ": " + why.text();
  };
  shuffle(nodes);
  for (const Address& node : nodes) {
    if (is_stopping() || tried.answers == kAnswersMax) break;
    if (!are_seeds && tried.nodes.size() == kKnownTriedMax) break;
    if (tried.nodes.contains(node.text)) continue;
    if (asked_at_) return Found::kNothingYet;
    tried.nodes.insert(node.text);
    auto view = ask(node);
    session_.close();
    if (!view.ok()) {
      refused(node, view.status());
      continue;
    }
    ++tried.answers;
    const Status accepted = accept(std::move(view).value(), node, are_seeds);
    if (accepted.ok()) return Found::kShape;
    refused(node, accepted);
  }
  return Found::kNothing;
}

Result<ClusterView> ClusterWatch::ask(const Address& node) {
  const TimePoint until = Clock::now() + options_.connect_timeout;
  const auto endpoints = names_.look_up(node, until);
  if (!endpoints.ok()) return endpoints.status();
  if (Status opened = session_.open(endpoints.value(), node.host, until); !opened.ok())
    return opened;
  asked_at_ = Clock::now();
  refreshes_.fetch_add(1, std::memory_order_relaxed);
  ClusterView view;
  Status wrong;
  // In this order, so that the slots are at least as new as the epoch.
  Status answered = session_.ask({{"CLUSTER", "INFO"}, {"CLUSTER", "SLOTS"}}, until,
                                 [&](std::size_t command, const Reply& reply) {
                                   if (!wrong.ok()) return;
                                   if (command == 0) {
                                     wrong = read_cluster_info(reply, view);
                                     return;
                                   }
                                   auto shape = read_cluster_slots(reply, node.host);
                                   wrong = shape.status();
                                   if (shape.ok()) view.shape = std::move(shape).value();
                                 });
  if (answered.code() == StatusCode::kRefused) {
    return refused_by_cluster("AUTH (options user, password)", answered.text());
  }
  if (!answered.ok()) return answered;
  if (!wrong.ok()) return wrong;
  return view;
}

Status ClusterWatch::accept(ClusterView view, const Address& node, bool from_seed) {
  const std::shared_ptr<const ClusterShape> before = believed_.shape();
  Status accepted = believed_.accept(std::move(view), from_seed);
  if (!accepted.ok()) return accepted;
  const std::shared_ptr<const ClusterShape>& shape = believed_.shape();
  const auto changed = map_.replace(*shape, nodes_);
  if (!changed.ok()) return changed.status();
  if (changed.value() != 0 || shape != before) tell_change(changed.value(), node);
  if (refreshed_) refreshed_(*shape);
  return {};
}

void ClusterWatch::tell_change(std::size_t slots, const Address& node) {
  const std::shared_ptr<const ClusterShape>& shape = believed_.shape();
  {
    const std::lock_guard lock(mutex_);
    shape_ = shape;
  }
  std::size_t replicas = 0;
  for (const ClusterShape::Shard& shard : shape->shards) replicas += shard.replicas.size();
  report_(LogLevel::kInfo, "the cluster has " + std::to_string(shape->shards.size()) +
                               " masters and " + std::to_string(replicas) + " replicas; " +
                               std::to_string(slots) +
                               " slots have another master than before, says " + node.text +
                               " (epoch " + std::to_string(believed_.epoch()) + ")");
  changed_(*shape);
}

std::vector<Address> ClusterWatch::known_nodes() const {
  std::vector<Address> nodes;
  if (!believed_.shape()) return nodes;
  for (const ClusterShape::Shard& shard : believed_.shape()->shards) {
    nodes.push_back(shard.master.address);
    for (const ClusterNode& replica : shard.replicas) nodes.push_back(replica.address);
  }
  return nodes;
}

void ClusterWatch::shuffle(std::vector<Address>& nodes) {
  for (std::size_t left = nodes.size(); left > 1; --left) {
    const auto chosen = static_cast<std::size_t>(jitter_() * static_cast<double>(left));
    std::swap(nodes[left - 1], nodes[chosen]);
  }
}

}  // namespace fcap::redis
