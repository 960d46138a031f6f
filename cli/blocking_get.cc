#include "cli/blocking_get.h"

#include <condition_variable>
#include <mutex>

namespace fcap::cli {
namespace {

class WaitingGet final : public StoreCompletion {
 public:
  void complete(const StoreOutcome& outcome) noexcept override {
    const std::lock_guard lock(mutex_);
    code_ = outcome.code;
    record_.assign(outcome.record);
    text_.assign(outcome.text);
    stale_ = outcome.stale;
    done_ = true;
    changed_.notify_one();
  }

  Result<CheckedRecord> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    switch (code_) {
      case StoreCode::kOk:
        return CheckedRecord{std::move(record_), stale_};
      case StoreCode::kNotFound:
        return CheckedRecord{std::nullopt, stale_};
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
  bool stale_ = false;
};

}  // namespace

Result<std::optional<std::string>> blocking_get(Store& store, std::string_view key,
                                                std::chrono::milliseconds timeout) {
  WaitingGet waiting;
  store.get(key, std::chrono::steady_clock::now() + timeout, waiting);
  Result<CheckedRecord> record = waiting.wait();
  if (!record.ok()) return record.status();
  return std::move(record).value().bytes;
}

Result<CheckedRecord> blocking_get_maybe_stale(Store& store, std::string_view key,
                                               std::chrono::milliseconds timeout) {
  WaitingGet waiting;
  store.get_maybe_stale(key, std::chrono::steady_clock::now() + timeout, waiting);
  return waiting.wait();
}

}  // namespace fcap::cli
