#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <fcap/cplusplus.h>

namespace fcap {

/// What kind of thing went wrong.
enum class StatusCode : std::uint8_t {
  kOk,
  kInvalidArgument,   ///< a setting or argument is wrong; the text names it
  kNotFound,          ///< a file, table or row that must exist does not
  kUnavailable,       ///< a server cannot be reached or does not answer
  kDeadlineExceeded,  ///< no answer in the time allowed
  kCorrupt,           ///< bytes that do not hold what they should
  kRefused,           ///< understood, and refused on purpose (a guard; the text names the override)
  kConflict,          ///< something else changed it first
  kInternal,          ///< a bug, or the machine is out of something
};

/// The outcome of an operation that gives no value. Success is one null pointer: it never
/// allocates.
///
/// Thread safety: a value type; distinct objects are independent.
class [[nodiscard]] Status {
 public:
  /// Success.
  Status() noexcept = default;

  /// A failure. `text` is for people and names the setting to change; `retryable` says whether the
  /// same call may succeed later without a change.
  static Status error(StatusCode code, std::string text, bool retryable = false) {
    Status status;
    status.failure_ = std::make_shared<const Failure>(Failure{code, retryable, std::move(text)});
    return status;
  }

  [[nodiscard]] bool ok() const noexcept { return failure_ == nullptr; }
  [[nodiscard]] StatusCode code() const noexcept {
    return failure_ ? failure_->code : StatusCode::kOk;
  }
  /// Whether trying again, unchanged, can help.
  [[nodiscard]] bool retryable() const noexcept { return failure_ && failure_->retryable; }
  /// The text for people; empty on success.
  [[nodiscard]] const std::string& text() const noexcept {
    static const std::string none;
    return failure_ ? failure_->text : none;
  }

 private:
  struct Failure {
    StatusCode code;
    bool retryable;
    std::string text;
  };
  std::shared_ptr<const Failure> failure_;
};

/// A value, or why there is none. `value()` may be called only when `ok()`.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  Result(Status failure)
      : state_(std::in_place_index<1>, std::move(failure)) {}  // NOLINT: implicit

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  [[nodiscard]] Status status() const { return ok() ? Status{} : std::get<1>(state_); }
  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace fcap
