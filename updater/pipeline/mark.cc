#include "updater/pipeline/mark.h"

#include <utility>

#include "updater/pipeline/store_failure.h"
#include "updater/process/invariant.h"

namespace fcap::updater {
namespace {

constexpr const char* kOneAtATime = "a mark has one operation under way at a time";

}  // namespace

void Mark::read(Store::Deadline deadline) {
  must_hold(!busy(), kOneAtATime);
  operation_ = Operation::kRead;
  pending_.store(true, std::memory_order_relaxed);
  store_->get(key_, deadline, *this);
}

void Mark::write(MarkValue value, Instant expire_at, Store::Deadline deadline,
                 std::uint64_t epoch) {
  must_hold(!busy(), kOneAtATime);
  operation_ = Operation::kWrite;
  pending_.store(true, std::memory_order_relaxed);
  const std::string desired = encode_mark(value);
  attempted_ = std::move(value);
  Store::CompareAndSet change{.key = key_, .desired = desired, .expire_at = expire_at};
  change.connection_epoch = epoch;
  if (confirmed_text_) change.expected = *confirmed_text_;
  store_->compare_and_set(change, deadline, *this);
}

void Mark::complete(const StoreOutcome& outcome) noexcept {
  code_ = outcome.code;
  record_.assign(outcome.record);
  text_.assign(outcome.text);
  pending_.store(false, std::memory_order_release);
}

Mark::MarkOutcome Mark::take_read() {
  found_text_.reset();
  found_.reset();
  no_mark_ = false;
  if (code_ == StoreCode::kOk) {
    found_text_ = record_;
    found_ = decode_mark(record_);
    no_mark_ = !found_;
    // A cluster's shard was copied to here: the mark speaks for some of the users only.
    if (found_ && found_->shard) found_.reset();
    return MarkOutcome::kRead;
  }
  return code_ == StoreCode::kNotFound ? MarkOutcome::kRead : MarkOutcome::kReadFailed;
}

Mark::MarkOutcome Mark::poll(bool trust) {
  if (operation_ == Operation::kNone || pending_.load(std::memory_order_acquire)) {
    return MarkOutcome::kNothing;
  }
  const Operation ended = operation_;
  operation_ = Operation::kNone;
  if (ended == Operation::kRead) return take_read();
  switch (code_) {
    case StoreCode::kOk:
      if (!trust) return MarkOutcome::kUnknown;
      confirmed_text_ = encode_mark(*attempted_);
      confirmed_ = std::exchange(attempted_, std::nullopt);
      return MarkOutcome::kWritten;
    case StoreCode::kConflict:
      attempted_.reset();
      return MarkOutcome::kConflict;
    default:
      return MarkOutcome::kUnknown;
  }
}

std::string Mark::failure() const {
  return describe_failure(code_, text_);
}

void Mark::accept_found() noexcept {
  confirmed_text_ = found_text_;
  confirmed_ = found_;
  attempted_.reset();
}

}  // namespace fcap::updater
