#include "updater/pipeline/mark.h"

#include <cassert>
#include <charconv>

#include <fmt/format.h>

#include "updater/pipeline/store_failure.h"

namespace fcap::updater {

std::string mark_key(std::string_view prefix, std::string_view group, std::string_view topic,
                     std::int32_t partition) {
  return fmt::format("{}:mark:{{0}}:{}:{}:{}", prefix, group, topic, partition);
}

std::optional<std::int64_t> parse_mark(std::string_view text) noexcept {
  std::int64_t offset = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, offset);
  if (error != std::errc{} || at != end || offset < 0) return std::nullopt;
  return offset;
}

void Mark::read(Store::Deadline deadline) {
  assert(!busy());
  operation_ = Operation::kRead;
  ended_.store(false, std::memory_order_relaxed);
  store_->get(key_, deadline, *this);
}

void Mark::write(std::int64_t offset, Instant expire_at, Store::Deadline deadline) {
  assert(!busy());
  operation_ = Operation::kWrite;
  attempted_ = offset;
  ended_.store(false, std::memory_order_relaxed);
  const std::string desired = std::to_string(offset);
  Store::CompareAndSet change{key_, std::nullopt, desired, expire_at};
  if (confirmed_text_) change.expected = *confirmed_text_;
  store_->compare_and_set(change, deadline, *this);
}

void Mark::complete(const StoreOutcome& outcome) noexcept {
  code_ = outcome.code;
  record_.assign(outcome.record);
  text_.assign(outcome.text);
  ended_.store(true, std::memory_order_release);
}

Mark::Outcome Mark::poll(bool trust) {
  if (operation_ == Operation::kNone || !ended_.load(std::memory_order_acquire)) {
    return Outcome::kNothing;
  }
  const Operation ended = operation_;
  operation_ = Operation::kNone;
  if (ended == Operation::kRead) {
    if (code_ == StoreCode::kNotFound) {
      found_text_.reset();
      found_.reset();
      return Outcome::kRead;
    }
    if (code_ != StoreCode::kOk) return Outcome::kUnread;
    found_text_ = record_;
    found_ = parse_mark(record_);
    return Outcome::kRead;
  }
  switch (code_) {
    case StoreCode::kOk:
      if (!trust) return Outcome::kUnknown;
      confirmed_ = attempted_;
      confirmed_text_ = std::to_string(*attempted_);
      attempted_.reset();
      return Outcome::kWritten;
    case StoreCode::kConflict:
      attempted_.reset();
      return Outcome::kConflict;
    default:
      return Outcome::kUnknown;
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
