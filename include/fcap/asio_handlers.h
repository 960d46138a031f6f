#pragma once

#include <condition_variable>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <asio/execution/context.hpp>
#include <asio/execution_context.hpp>
#include <asio/query.hpp>

#include <fcap/cplusplus.h>

namespace fcap {

/// A part of <fcap/asio.h>: the handlers that wait for answers of fcap's and run in one execution
/// context, such as an io_context. When the context ends, they are destroyed with it, as those of
/// its sockets and timers are; an answer that arrives later reaches nobody.
///
/// Thread safety: all functions from any thread.
class AsioHandlers {
 public:
  /// One handler, with the executor that it runs on.
  class Waiting {
   public:
    Waiting() = default;
    virtual ~Waiting() = default;
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    /// Destroys the handler, and then the executor.
    virtual void drop() noexcept = 0;

   private:
    friend class AsioHandlers;
    std::list<std::shared_ptr<Waiting>>::iterator place_;
    bool dropped_ = false;
    bool answered_ = false;
  };

  /// Those of the context that `executor` belongs to.
  template <typename Executor>
  [[nodiscard]] static std::shared_ptr<AsioHandlers> of(const Executor& executor) {
    return asio::use_service<Service>(context_of(executor)).handlers;
  }

  /// Throws std::bad_alloc.
  void add(const std::shared_ptr<Waiting>& waiting) {
    {
      const std::lock_guard lock(mutex_);
      waiting->dropped_ = ended_;
      if (!ended_) waiting->place_ = waiting_.insert(waiting_.end(), waiting);
    }
    if (waiting->dropped_) waiting->drop();
  }

  /// Calls answer() and then drops the handler, unless its context has ended. The context's end
  /// waits for that.
  template <typename Answer>
  void answer(Waiting& waiting, const Answer& answer) {
    {
      const std::lock_guard lock(mutex_);
      if (waiting.dropped_) return;
      waiting.answered_ = true;
    }
    const Leaving leaving{*this, waiting};
    answer();
  }

 private:
  // Ends with its context, before the context's own parts.
  struct Service final : asio::execution_context::service {
    static inline asio::execution_context::id id;

    explicit Service(asio::execution_context& context)
        : asio::execution_context::service(context) {}
    void shutdown() noexcept override { handlers->end(); }

    const std::shared_ptr<AsioHandlers> handlers = std::make_shared<AsioHandlers>();
  };

  // Also where answering throws.
  struct Leaving {
    ~Leaving() {
      waiting.drop();
      const std::lock_guard lock(handlers.mutex_);
      handlers.waiting_.erase(waiting.place_);
      handlers.left_.notify_all();
    }
    AsioHandlers& handlers;
    Waiting& waiting;
  };

  template <typename Executor>
  static asio::execution_context& context_of(const Executor& executor) {
    if constexpr (asio::can_query<const Executor&, asio::execution::context_t>::value) {
      return asio::query(executor, asio::execution::context);
    } else {
      return executor.context();
    }
  }

  void end() noexcept {
    std::list<std::shared_ptr<Waiting>> dropped;
    std::unique_lock lock(mutex_);
    ended_ = true;
    for (auto next = waiting_.begin(); next != waiting_.end();) {
      const auto waiting = next++;
      if ((*waiting)->answered_) continue;
      (*waiting)->dropped_ = true;
      dropped.splice(dropped.end(), waiting_, waiting);
    }
    lock.unlock();
    for (const std::shared_ptr<Waiting>& waiting : dropped) waiting->drop();
    lock.lock();
    left_.wait(lock, [this] { return waiting_.empty(); });
  }

  std::mutex mutex_;
  std::condition_variable left_;
  std::list<std::shared_ptr<Waiting>> waiting_;  // guarded by mutex_, as are their flags
  bool ended_ = false;                           // guarded by mutex_
};

}  // namespace fcap
