#include "redis/io_thread.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/caller_state.h"
#include "base/file_handle.h"
#include "base/thread.h"

namespace fcap::redis {

namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Result<std::unique_ptr<IoThread>> IoThread::create(SharedState& shared, Resolver& resolver,
                                                   const Address& address, bool looks) {
  base::FileHandle epoll(epoll_create1(EPOLL_CLOEXEC));
  base::FileHandle wakes(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // Edge-triggered, so that the counter never needs to be read.
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  if (!epoll.open() || !wakes.open() ||
      epoll_ctl(epoll.fd(), EPOLL_CTL_ADD, wakes.fd(), &event) != 0) {
    const std::string why = std::generic_category().message(errno);
    return Status::error(StatusCode::kInternal, "cannot create an epoll descriptor: " + why, true);
  }
  std::unique_ptr<IoThread> thread(new IoThread(shared));
  thread->epoll_fd_ = epoll.release();
  thread->event_fd_ = wakes.release();
  if (shared.cluster != nullptr) {
    thread->links_ = std::make_unique<ClusterLinks>(shared, *thread, resolver, looks);
  } else {
    thread->link_.emplace(shared, *thread, resolver, address);
  }
  return thread;
}

IoThread::~IoThread() {
  close_descriptors();
}

Status IoThread::start(std::size_t index) {
  auto started = base::start_thread(
      "fcap-redis-" + std::to_string(index), [this] { run(); }, shared_.options.thread_started);
  if (!started.ok()) return started.status();
  thread_ = std::move(started).value();
  return {};
}

void IoThread::join() {
  if (thread_.joinable()) thread_.join();
}

void IoThread::drain() {
  shut_down();
}

void IoThread::shut_down() {
  take_submitted(Clock::now());
  with_links([](auto& links) { links.shut_down(); });
}

void IoThread::close_descriptors() noexcept {
  if (links_) links_->close_descriptors();
  if (link_) link_->close_descriptor();
  if (event_fd_ >= 0) ::close(std::exchange(event_fd_, -1));
  if (epoll_fd_ >= 0) ::close(std::exchange(epoll_fd_, -1));
}

void IoThread::wake() noexcept {
  // The thread may be a host's. Canceled, it would be unwound in write(), out of this noexcept
  // function.
  const base::CallerState caller;
  const std::uint64_t one = 1;
  // Fails only when the counter is full, that is, when the thread was woken anyway.
  [[maybe_unused]] const ssize_t written = ::write(event_fd_, &one, sizeof(one));
}

void IoThread::watch(int fd, bool output, EventHandler& handler) {
  set_events(fd, EPOLLIN | EPOLLRDHUP | (output ? EPOLLOUT : 0U), handler);
}

void IoThread::watch_end(int fd, EventHandler& handler) {
  set_events(fd, EPOLLRDHUP | EPOLLET, handler);
}

void IoThread::set_events(int fd, std::uint32_t events, EventHandler& handler) {
  epoll_event event = {};
  event.events = events;
  event.data.ptr = &handler;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) != 0) {
    epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
  }
}

void IoThread::unwatch(int fd) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
}

void IoThread::run() {
  if (link_) link_->start(Clock::now());
  while (!shared_.stopping.load(std::memory_order_acquire)) {
    const auto now = Clock::now();
    take_submitted(now);
    with_links([now](auto& links) { links.tick(now); });
    if (with_links([](auto& links) { return links.holds_back(); })) {
      // What happens now may bring more requests for the same sends.
      if (take_events(false)) continue;
      with_links([](auto& links) { links.send_held(Clock::now()); });
    }
    if (!links_ || !links_->needs_tick()) take_events(true);
  }
  shut_down();
}

void IoThread::take_submitted(Link::TimePoint now) {
  Request* request = queue_.take_all();
  while (request != nullptr) {
    // Read first: the request may be gone once it is finished.
    Request* const next = SubmissionQueue::next(*request);
    with_links([&](auto& links) { links.admit(*request, now); });
    request = next;
  }
}

bool IoThread::take_events(bool may_wait) {
  std::array<epoll_event, kEventsMax> events;
  const bool sleeps = may_wait && queue_.try_sleep();
  const auto until =
      sleeps ? with_links([](auto& links) { return links.next_time(); }) : Link::TimePoint::min();
  const auto asleep_at = Clock::now();
  const int count = wait(events, asleep_at, until);
  if (sleeps) queue_.awake();
  // A look that finds nothing does not interrupt the work: if this thread was held up before or
  // during the look, the next sleep shows it.
  if (!may_wait && count <= 0) return false;
  const auto now = Clock::now();
  with_links([&](auto& links) { links.woke(asleep_at, until, now); });
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.ptr == nullptr) continue;
    const bool readable = (event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    static_cast<EventHandler*>(event.data.ptr)
        ->on_event(readable, (event.events & EPOLLOUT) != 0, now);
  }
  return count > 0;
}

int IoThread::wait(std::span<epoll_event> events, Link::TimePoint now, Link::TimePoint until) {
  using std::chrono::nanoseconds;
  const int room = static_cast<int>(events.size());
  if (until == Link::TimePoint::max()) return epoll_wait(epoll_fd_, events.data(), room, -1);
  if (until == Link::TimePoint::min()) return epoll_wait(epoll_fd_, events.data(), room, 0);
  const auto left = std::max<nanoseconds>(until - now, nanoseconds{0});
  if (has_pwait2_) {
    timespec timeout = {};
    timeout.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
    timeout.tv_nsec = (left % std::chrono::seconds{1}).count();
    const int count = epoll_pwait2(epoll_fd_, events.data(), room, &timeout, nullptr);
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    has_pwait2_ = false;  // a kernel before 5.11, or a sandbox that does not know it
  }
  const auto left_ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return epoll_wait(epoll_fd_, events.data(), room,
                    static_cast<int>(std::min<std::int64_t>(left_ms, 60'000)));
}

}  // namespace fcap::redis
