#pragma once

#include <string>

#include <fcap/store.h>

#include "redis/client.h"

namespace fcap::redis {

class StorePools;

/// A request that the transport has answered is kOk whatever the reply says; its operation reads
/// that.
[[nodiscard]] StoreCode store_code(TransportCode code) noexcept;

/// The outcome of a GET by its reply. False: the reply is of a kind that GET never gets, and
/// nothing is completed.
[[nodiscard]] bool complete_get(const Reply& reply, StoreCompletion& done,
                                bool stale = false) noexcept;

/// What all operations for one caller have in common. An operation is created once and used many
/// times, so that its strings keep their memory.
class StoreOperation : public Request {
 public:
  StoreOperation(Client& client, StorePools& pools) : client_(client), pools_(pools) {}

 protected:
  ~StoreOperation() = default;

  /// For a reply that is an error, or of a kind that its command never gets.
  void note_failure(const Reply& reply);
  void complete(const StoreOutcome& outcome) noexcept;
  /// The outcome of a transport code other than kOk.
  void complete_failed(TransportCode code) noexcept;

  Client& client_;
  StorePools& pools_;
  StoreCompletion* done_ = nullptr;
  bool has_error_ = false;
  std::string error_;
};

}  // namespace fcap::redis
