#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <fcap/store.h>

#include "redis/appends_operation.h"
#include "redis/client.h"
#include "redis/free_list.h"
#include "redis/store_operation.h"

namespace fcap::redis {

// The functions start…() throw std::bad_alloc, and then have not submitted the operation.

/// GET.
class GetOperation final : public StoreOperation {
 public:
  using StoreOperation::StoreOperation;
  /// A read of its own.
  void start(std::string_view key, Store::Deadline deadline, StoreCompletion& done);
  /// One that may take the answer to another read of the key that has not been sent yet.
  void start_joining(std::string_view key, Store::Deadline deadline, StoreCompletion& done);
  /// start_joining() for a reader who may get what a replica has.
  void start_maybe_stale(std::string_view key, Store::Deadline deadline, StoreCompletion& done);
  void on_reply(std::uint32_t index, const Reply& reply) noexcept override;
  void on_done(TransportCode code) noexcept override;

 private:
  void submit(std::string_view key, Store::Deadline deadline, StoreCompletion& done);

  int repeats_left_ = 0;
};

/// The script that compares and stores; SET with NX where there must be no record.
class CompareAndSetOperation final : public StoreOperation {
 public:
  using StoreOperation::StoreOperation;
  void start(const Store::CompareAndSet& change, Store::Deadline deadline, StoreCompletion& done);
  void on_reply(std::uint32_t index, const Reply& reply) noexcept override;
  void on_done(TransportCode code) noexcept override;

 private:
  void write_creation(const Store::CompareAndSet& change);
  void write_script(const Store::CompareAndSet& change);

  bool whole_script_ = false;
  bool stored_ = false;
  bool shrinks_ = false;   // the record: allowed also where Redis' memory is full
  std::string arguments_;  // in RESP, from the number of keys on
};

/// The script's text, for checking beforehand whether an account may run it.
[[nodiscard]] std::string_view compare_and_set_script() noexcept;
/// Its SHA-1, by which EVALSHA names it.
[[nodiscard]] std::string_view compare_and_set_sha() noexcept;

/// Operations waiting to be used again.
class StorePools {
 public:
  explicit StorePools(std::size_t operations_max)
      : gets(std::min(operations_max, kGetsMax)),
        appends(kWritesMax),
        compare_and_sets(kWritesMax) {}

  FreeList<GetOperation> gets;
  FreeList<AppendsOperation> appends;
  FreeList<CompareAndSetOperation> compare_and_sets;

 private:
  // 500,000 reads per second of 30 ms each; a place takes 16 bytes while nothing is in it.
  static constexpr std::size_t kGetsMax = 16'384;
  static constexpr std::size_t kWritesMax = 1024;
};

}  // namespace fcap::redis
