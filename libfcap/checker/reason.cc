#include <fcap/verdict.h>

namespace fcap {

std::string_view to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::kPassed:
      return "passed";
    case Reason::kCapped:
      return "capped";
    case Reason::kNoUser:
      return "no_user";
    case Reason::kNoRules:
      return "no_rules";
    case Reason::kTimeout:
      return "timeout";
    case Reason::kUnavailable:
      return "unavailable";
    case Reason::kBreakerOpen:
      return "breaker_open";
    case Reason::kOverloaded:
      return "overloaded";
    case Reason::kUndecodable:
      return "undecodable";
    case Reason::kForked:
      return "forked";
    case Reason::kShutdown:
      return "shutdown";
    case Reason::kReentrant:
      return "reentrant";
    case Reason::kInvalid:
      return "invalid";
  }
  return "unknown";
}

}  // namespace fcap
