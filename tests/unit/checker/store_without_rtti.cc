// Compiled with -fno-rtti, as many hosts are.
#include "store_without_rtti.h"

namespace fcap::checker_test {
namespace {

class PlainStore final : public Store {
 public:
  void get(std::string_view, Deadline, StoreCompletion& done) noexcept override {
    done.complete({.code = StoreCode::kNotFound});
  }
  void append(std::string_view, std::string_view, Instant, Deadline,
              StoreCompletion& done) noexcept override {
    done.complete({.code = StoreCode::kUnavailable});
  }
  void compare_and_set(const CompareAndSet&, Deadline, StoreCompletion& done) noexcept override {
    done.complete({.code = StoreCode::kUnavailable});
  }
};

}  // namespace

std::shared_ptr<Store> store_without_rtti() {
  return std::make_shared<PlainStore>();
}

}  // namespace fcap::checker_test
