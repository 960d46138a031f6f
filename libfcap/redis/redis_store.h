#pragma once

#include <cstdint>
#include <memory>

#include <fcap/store.h>

#include "redis/client.h"

namespace fcap::redis {

/// What an operation's deadline means.
enum class Deadlines : std::uint8_t {
  kTotal,     ///< when it ends; lists of appends are patient all the same
  kProgress,  ///< every operation is patient (Request::patient): for a writer whose reads and marks
              ///< stand in the same queue as its appends
};

/// The Store over a Client. Writes are APPEND, then PEXPIREAT if the expiry is not known to be late
/// enough (AppendsOperation), so that a record never stays without one; compare-and-set is one
/// script, EVALSHA with EVAL on NOSCRIPT, that compares and stores bytes and knows no rule.
[[nodiscard]] std::unique_ptr<Store> make_redis_store(std::shared_ptr<Client> client,
                                                      Deadlines deadlines = Deadlines::kTotal);

}  // namespace fcap::redis
