#include "host_store.h"

namespace fcap::checker_test {

void HostStore::get(std::string_view /*key*/, Deadline /*deadline*/,
                    StoreCompletion& done) noexcept {
  done.complete({.code = StoreCode::kNotFound});
}

void HostStore::append(std::string_view /*key*/, std::string_view /*bytes*/, Instant /*expire_at*/,
                       Deadline /*deadline*/, StoreCompletion& done) noexcept {
  done.complete({.code = StoreCode::kUnavailable});
}

void HostStore::compare_and_set(const CompareAndSet& /*change*/, Deadline /*deadline*/,
                                StoreCompletion& done) noexcept {
  done.complete({.code = StoreCode::kUnavailable});
}

}  // namespace fcap::checker_test
