#pragma once

namespace fcap::checker {

/// Marks, for as long as it lives, that this thread runs a callback of one Checker. Frames nest
/// when a callback of one Checker leads to one of another.
class CallbackFrame {
 public:
  explicit CallbackFrame(const void* checker) noexcept;
  ~CallbackFrame();
  CallbackFrame(const CallbackFrame&) = delete;
  CallbackFrame& operator=(const CallbackFrame&) = delete;

  /// Whether the calling thread is inside a callback of that Checker.
  [[nodiscard]] static bool inside(const void* checker) noexcept;

 private:
  const void* checker_;
  const CallbackFrame* outer_;
};

}  // namespace fcap::checker
