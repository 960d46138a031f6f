#include "checker/answer_queue.h"

#include <utility>

namespace fcap::checker {

AnswerQueue::~AnswerQueue() {
  stop();
}

Status AnswerQueue::start(base::ThreadHook hook) {
  stopping_ = false;
  auto started = base::start_thread(
      "fcap-answers", [this] { run(); }, std::move(hook));
  if (!started.ok()) {
    stopping_ = true;
    return started.status();
  }
  thread_ = std::move(started).value();
  return {};
}

bool AnswerQueue::push(QueuedAnswer& answer) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    answer.next_queued = nullptr;
    if (last_ == nullptr) {
      first_ = &answer;
    } else {
      last_->next_queued = &answer;
    }
    last_ = &answer;
    if (++waiting_count_ > 1) return true;
  }
  changed_.notify_one();
  return true;
}

std::size_t AnswerQueue::waiting() const noexcept {
  const std::lock_guard lock(mutex_);
  return waiting_count_;
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
    QueuedAnswer* answer = first_;
    first_ = answer->next_queued;
    if (first_ == nullptr) last_ = nullptr;
    --waiting_count_;
    lock.unlock();
    answer->give();
    lock.lock();
  }
}

}  // namespace fcap::checker
