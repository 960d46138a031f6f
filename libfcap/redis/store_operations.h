#pragma once

#include <string>

#include <fcap/store.h>

#include "redis/client.h"
#include "redis/free_list.h"

namespace fcap::redis {

class StorePools;

/// What the three operations of the Store have in common. Each is made once and used many times, so
/// that its strings keep their memory.
class StoreOperation : public Request {
 public:
  StoreOperation(Client& client, StorePools& pools) : client_(client), pools_(pools) {}

 protected:
  ~StoreOperation() = default;

  void note_error(const Reply& reply);
  void complete(const StoreOutcome& outcome) noexcept;
  /// The outcome of a transport code other than kOk.
  void complete_failed(TransportCode code) noexcept;

  Client& client_;
  StorePools& pools_;
  StoreCompletion* done_ = nullptr;
  bool has_error_ = false;
  std::string error_;
};

/// GET.
class GetOperation final : public StoreOperation {
 public:
  using StoreOperation::StoreOperation;
  void start(std::string_view key, Store::Deadline deadline, StoreCompletion& done);
  void on_reply(std::uint32_t index, const Reply& reply) noexcept override;
  void on_done(TransportCode code) noexcept override;
};

/// APPEND and PEXPIREAT GT. GT says 0 both when the expiry is later already and when there is none,
/// as with a new key; then PEXPIREAT NX follows, and GT once more when another writer's NX came
/// between, so that the later of the two expiries stands in the end.
class AppendOperation final : public StoreOperation {
 public:
  using StoreOperation::StoreOperation;
  void start(std::string_view key, std::string_view bytes, Instant expire_at,
             Store::Deadline deadline, StoreCompletion& done);
  void on_reply(std::uint32_t index, const Reply& reply) noexcept override;
  void on_done(TransportCode code) noexcept override;

 private:
  enum class Step : std::uint8_t { kAppend, kExpireNew, kExpireAgain };
  void expire(Step step, std::string_view flag);

  Step step_ = Step::kAppend;
  std::string key_;
  std::string expire_at_;
  std::size_t length_bytes_ = 0;
  bool expiry_set_ = false;
};

/// The script that compares and stores.
class CompareAndSetOperation final : public StoreOperation {
 public:
  using StoreOperation::StoreOperation;
  void start(const Store::CompareAndSet& change, Store::Deadline deadline, StoreCompletion& done);
  void on_reply(std::uint32_t index, const Reply& reply) noexcept override;
  void on_done(TransportCode code) noexcept override;

 private:
  bool whole_script_ = false;
  bool stored_ = false;
  std::string arguments_;  // in RESP, from the number of keys on
};

/// The script's text and its SHA-1, for tests.
[[nodiscard]] std::string_view compare_and_set_script() noexcept;
[[nodiscard]] std::string_view compare_and_set_sha() noexcept;

/// Operations waiting to be used again.
class StorePools {
 public:
  FreeList<GetOperation> gets;
  FreeList<AppendOperation> appends;
  FreeList<CompareAndSetOperation> compare_and_sets;
};

}  // namespace fcap::redis
