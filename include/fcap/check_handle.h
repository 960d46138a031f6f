#pragma once

#include <optional>
#include <utility>

#include <fcap/export.h>
#include <fcap/verdict.h>

namespace fcap {

namespace checker {
class CallbackChecks;
class AsyncRead;
}  // namespace checker

/// A check that was started by check_async(); it can be canceled through this. May outlive the
/// Checker. Destroying the handle does not cancel the check.
class FCAP_EXPORT CheckHandle {
 public:
  CheckHandle() noexcept = default;
  CheckHandle(CheckHandle&& other) noexcept : read_(std::exchange(other.read_, nullptr)) {}
  CheckHandle& operator=(CheckHandle&& other) noexcept;
  CheckHandle(const CheckHandle&) = delete;
  CheckHandle& operator=(const CheckHandle&) = delete;
  ~CheckHandle();

  /// True: the callback has not run and never will, and it has been destroyed. False: it has run,
  /// is running or is about to run, or this handle belongs to no check. May be called from any
  /// thread, also from inside a callback, but not on one handle from two threads at once.
  bool cancel() noexcept;

 private:
  friend class checker::CallbackChecks;  // makes handles: takes over a reference
  explicit CheckHandle(checker::AsyncRead* read) noexcept : read_(read) {}

  checker::AsyncRead* read_ = nullptr;
};

/// What check_async() gives.
struct AsyncStart {
  /// With CheckOptions::return_known: the answer, if it was known at once. Then there is no
  /// callback.
  std::optional<CheckResult> answer = {};
  CheckHandle handle = {};
};

}  // namespace fcap
