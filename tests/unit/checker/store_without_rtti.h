#pragma once

#include <memory>

#include <fcap/store.h>

namespace fcap::checker_test {

/// A store of a host that is compiled without run-time type information: every record is missing.
std::shared_ptr<Store> store_without_rtti();

}  // namespace fcap::checker_test
