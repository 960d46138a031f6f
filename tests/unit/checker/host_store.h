#pragma once

#include <memory>
#include <string_view>

#include <fcap/store.h>

namespace fcap::checker_test {

/// A Store of the host's own: every record is missing, and nothing can be written. Tests derive
/// theirs from it.
class HostStore : public Store {
 public:
  void get(std::string_view key, Deadline deadline, StoreCompletion& done) noexcept override;
  void append(std::string_view key, std::string_view bytes, Instant expire_at, Deadline deadline,
              StoreCompletion& done) noexcept override;
  void compare_and_set(const CompareAndSet& change, Deadline deadline,
                       StoreCompletion& done) noexcept override;
};

/// The same of a host that is compiled without run-time type information.
std::shared_ptr<Store> store_without_rtti();

}  // namespace fcap::checker_test
