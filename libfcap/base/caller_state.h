#pragma once

#include <cerrno>

#include <pthread.h>

namespace fcap::base {

/// Leaves a caller's thread as it was: errno, and whether it can be canceled. While this lives, it
/// cannot: what unwinds a canceled thread would end the process at a noexcept function.
class CallerState {
 public:
  CallerState() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_); }
  ~CallerState() {
    errno = error_;
    ::pthread_setcancelstate(cancel_state_, nullptr);
  }
  CallerState(const CallerState&) = delete;
  CallerState& operator=(const CallerState&) = delete;

 private:
  int error_ = errno;
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace fcap::base
