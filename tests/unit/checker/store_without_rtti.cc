// Compiled with -fno-rtti, as many hosts are.
#include "host_store.h"

namespace fcap::checker_test {
namespace {

class PlainStore final : public HostStore {};

}  // namespace

std::shared_ptr<Store> store_without_rtti() {
  return std::make_shared<PlainStore>();
}

}  // namespace fcap::checker_test
