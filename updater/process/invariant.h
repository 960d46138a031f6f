#pragma once

namespace fcap::updater {

/// Logs the sentence and where it does not hold, and ends the process by SIGABRT.
[[noreturn]] void end_for_broken(const char* invariant, const char* file, int line) noexcept;

/// What must hold whatever Kafka, Redis and the rest of the world do (docs/inside.md lists it). It
/// is checked in release builds too: where it is broken, what this process would commit, mark or
/// write next could be untrue for good, while all that stands in Kafka and Redis by then is true.
/// So the process ends, and the next one begins there. Anything that can happen is an error and not
/// a case for this.
///
/// For the updater alone. libfcap lives in another's process and never ends it: it gives up the
/// connection or the answer instead.
///
/// `invariant`: a sentence. Any thread.
inline void must_hold(bool holds, const char* invariant, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) noexcept {
  if (!holds) [[unlikely]]
    end_for_broken(invariant, file, line);
}

}  // namespace fcap::updater
