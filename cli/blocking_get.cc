#include "cli/blocking_get.h"

#include <condition_variable>
#include <mutex>

namespace fcap::cli {
namespace {

class Waiting final : public StoreCompletion {
 public:
  void complete(const StoreOutcome& outcome) noexcept override {
    const std::lock_guard lock(mutex_);
    code_ = outcome.code;
    record_.assign(outcome.record);
    text_.assign(outcome.text);
    done_ = true;
    changed_.notify_one();
  }

  Result<std::optional<std::string>> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    switch (code_) {
      case StoreCode::kOk:
        return std::optional<std::string>(std::move(record_));
      case StoreCode::kNotFound:
        return std::optional<std::string>();
      case StoreCode::kTimeout:
        return Status::error(StatusCode::kDeadlineExceeded, "Redis did not answer in time", true);
      case StoreCode::kServerError:
        return Status::error(StatusCode::kUnavailable, "Redis answered: " + text_, true);
      case StoreCode::kTooLarge:
        return Status::error(StatusCode::kCorrupt, text_);
      default:
        return Status::error(StatusCode::kUnavailable, "Redis cannot be reached (see --redis)",
                             true);
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  StoreCode code_ = StoreCode::kUnavailable;
  std::string record_;
  std::string text_;
};

}  // namespace

Result<std::optional<std::string>> blocking_get(Store& store, std::string_view key,
                                                std::chrono::milliseconds timeout) {
  Waiting waiting;
  store.get(key, std::chrono::steady_clock::now() + timeout, waiting);
  return waiting.wait();
}

}  // namespace fcap::cli
