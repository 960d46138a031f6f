#include "checker/gate.h"

#include "ledger/ids.h"

namespace fcap::checker {

Reason Gate::refuse_user(std::string_view user) const noexcept {
  if (closing()) return Reason::kShutdown;
  if (user.empty() || null_user_ids_.find(user) != null_user_ids_.end()) return Reason::kNoUser;
  if (user.size() > ledger::kIdBytesMax) return Reason::kInvalid;
  return Reason::kPassed;
}

bool Gate::is_user(std::string_view user) const noexcept {
  return !user.empty() && user.size() <= ledger::kIdBytesMax && !null_user_ids_.contains(user);
}

}  // namespace fcap::checker
