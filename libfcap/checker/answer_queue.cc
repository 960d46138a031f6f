#include "checker/answer_queue.h"

#include <utility>

#include <pthread.h>
#include <signal.h>

#include "checker/async_read.h"

namespace fcap::checker {

AnswerQueue::~AnswerQueue() {
  stop();
}

void AnswerQueue::start() {
  // The thread inherits the mask, so there is no instant at which it could take a signal.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    stopping_ = false;
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    stopping_ = true;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "fcap-answers");
}

bool AnswerQueue::push(AsyncRead& read, bool urgent) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || (!urgent && waiting_count_ >= kWaitingMax)) return false;
    read.next_waiting = nullptr;
    if (last_ == nullptr) {
      first_ = &read;
    } else {
      last_->next_waiting = &read;
    }
    last_ = &read;
    if (++waiting_count_ > 1) return true;
  }
  changed_.notify_one();
  return true;
}

void AnswerQueue::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void AnswerQueue::run() noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return first_ != nullptr || stopping_; });
    if (first_ == nullptr) return;
    AsyncRead* read = first_;
    first_ = read->next_waiting;
    if (first_ == nullptr) last_ = nullptr;
    --waiting_count_;
    lock.unlock();
    read->run();
    read->drop_reference();
    lock.lock();
  }
}

}  // namespace fcap::checker
