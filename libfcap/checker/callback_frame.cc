#include "checker/callback_frame.h"

namespace fcap::checker {
namespace {

// Points into the stacks of running callbacks only, so nothing outlives a Checker.
constinit thread_local const CallbackFrame* innermost = nullptr;

}  // namespace

CallbackFrame::CallbackFrame(const void* checker) noexcept : checker_(checker), outer_(innermost) {
  innermost = this;
}

CallbackFrame::~CallbackFrame() {
  innermost = outer_;
}

bool CallbackFrame::inside(const void* checker) noexcept {
  for (const CallbackFrame* frame = innermost; frame != nullptr; frame = frame->outer_) {
    if (frame->checker_ == checker) return true;
  }
  return false;
}

}  // namespace fcap::checker
