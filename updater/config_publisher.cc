#include "updater/config_publisher.h"

#include <atomic>
#include <utility>

namespace fcap::updater {
namespace {

constexpr std::chrono::seconds kLookEvery{10};
constexpr std::chrono::seconds kCallTime{2};
// Longer than any retention. It is extended every day, so that it ends only with the installation.
constexpr std::chrono::days kKeptFor{430};
constexpr std::chrono::hours kExtendEvery{24};

}  // namespace

/// One operation. It keeps itself alive until it is complete.
class ConfigPublisher::Call final : public StoreCompletion {
 public:
  static std::shared_ptr<Call> make() {
    auto call = std::make_shared<Call>();
    call->self_ = call;
    return call;
  }
  void complete(const StoreOutcome& outcome) noexcept override {
    const std::shared_ptr<Call> self = std::move(self_);
    code = outcome.code;
    record = outcome.record;
    text = outcome.text;
    ended.store(true, std::memory_order_release);
  }

  std::atomic<bool> ended{false};
  StoreCode code = StoreCode::kUnavailable;
  std::string record;
  std::string text;

 private:
  std::shared_ptr<Call> self_;
};

ConfigPublisher::ConfigPublisher(Store& store, const redis::ConfigRecord& record, LogCallback log)
    : store_(&store),
      key_(redis::config_key(record.key_prefix)),
      text_(redis::encode_config(record)),
      log_(std::move(log)) {}

ConfigPublisher::~ConfigPublisher() = default;

void ConfigPublisher::poll(Clock::time_point now) {
  if (call_) {
    if (!call_->ended.load(std::memory_order_acquire)) return;
    const std::shared_ptr<Call> ended = std::exchange(call_, nullptr);
    take(*ended);
    if (call_) return;
  }
  if (now < look_at_) return;
  look_at_ = now + kLookEvery;
  writing_ = false;
  call_ = Call::make();
  store_->get(key_, now + kCallTime, *call_);
}

void ConfigPublisher::take(const Call& call) {
  if (writing_) {
    // After a conflict or a failure the next look finds what there is.
    if (call.code != StoreCode::kOk) return;
    settled_ = true;
    extend_at_ = Clock::now() + kExtendEvery;
    return;
  }
  if (call.code == StoreCode::kNotFound) return write(nullptr);
  if (call.code != StoreCode::kOk) return;
  if (call.record == text_) {
    if (settled_ && Clock::now() < extend_at_) return;
    return write(&call.record);
  }
  // Two updaters that are set differently must not overwrite each other for ever.
  if (settled_) return;
  if (log_) {
    log_(LogLevel::kWarning, key_ + " says " + call.record + " and is replaced by " + text_ +
                                 ": Checkers must be set like this updater");
  }
  write(&call.record);
}

void ConfigPublisher::write(const std::string* found) {
  const auto expire_at =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) + kKeptFor;
  Store::CompareAndSet change{key_, std::nullopt, text_, expire_at};
  if (found != nullptr) change.expected = *found;
  writing_ = true;
  call_ = Call::make();
  store_->compare_and_set(change, Clock::now() + kCallTime, *call_);
}

}  // namespace fcap::updater
