#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <fcap/log.h>
#include <fcap/status.h>
#include <fcap/store.h>

#include "redis/config_record.h"
#include "updater/pipeline/gap_times.h"
#include "updater/pipeline/loss_statement.h"

namespace fcap::updater {

/// Keeps `<prefix>:!config` in the store: this updater's settings, which Checkers compare with
/// their own, and what may be missing: its open gaps, what is missing for good, and a
/// LossStatement. It is written at the start if it is missing or differs, again if it has gone
/// missing since (a Redis that lost its data), and when gaps open or close. Statements of other
/// updaters about their partitions stay. Never blocks.
///
/// Thread safety: trouble() from any thread, everything else from one. The store must outlive it;
/// an operation that is pending at destruction completes by itself.
class ConfigPublisher {
 public:
  using Clock = std::chrono::steady_clock;

  /// The store's clock minus this machine's, as last compared.
  using StoreClock = std::function<std::optional<std::chrono::milliseconds>()>;

  /// As Store::CompareAndSet::connection_epoch of the key.
  using Connection = std::function<std::uint64_t()>;

  /// Says whose statements these are.
  struct Reader {
    std::string group_id;
    std::string topic;
  };

  /// `store_clock`, `connection`: may be empty.
  ConfigPublisher(Store& store, const redis::ConfigRecord& record, Reader reader, LogCallback log,
                  StoreClock store_clock = {}, Connection connection = {});
  ~ConfigPublisher();
  ConfigPublisher(const ConfigPublisher&) = delete;
  ConfigPublisher& operator=(const ConfigPublisher&) = delete;

  /// Sets what to state about gaps from now on.
  void set_open_gaps(OpenGaps gaps);
  /// Marks that are gone, and a new connection, lead to a look at once.
  void set_marks(MarkNews marks);

  /// Does what is due; to be called several times per second.
  void tick(Clock::time_point now, Instant wall_now);

  /// Why this updater must end: the value has a record format that it does not know, so it neither
  /// replaces the value nor writes to it. Success: it may go on.
  [[nodiscard]] const Status& refused() const noexcept { return refused_; }

  /// Which partitions nobody has compared since Redis lost data, for /readyz; empty: there are
  /// none. Until then, Checkers call no count complete and refuse hard calls.
  [[nodiscard]] std::string trouble() const;

 private:
  class ConfigOperation;

  void ask_if_due();
  void note_connection();
  void on_answer(const ConfigOperation& call);
  using Missing = redis::ConfigRecord::MissingBefore;
  /// Which statements keep their slots. The rest are about all users.
  enum class Slots : std::uint8_t { kAll, kOfOthers, kNone };
  [[nodiscard]] std::chrono::milliseconds store_ahead() const;
  void note_trouble(const Missing& recorded);
  /// `merged`: one statement about all partitions that are this updater's: their latest instant,
  /// and the slots of all of them.
  [[nodiscard]] Missing missing_now(Missing recorded, bool merged, Slots slots) const;
  [[nodiscard]] std::string with_gaps(const std::string& config, const Missing& recorded) const;
  void write(const std::string* found, const std::string& text);

  Store* store_;
  const std::string key_;
  const std::string topic_;
  const std::string name_;  // of this updater's statements in the record
  const std::string text_;  // without gaps, and without when it was created
  const std::chrono::milliseconds retention_;
  const LogCallback log_;
  const StoreClock store_clock_;
  const Connection connection_;
  std::optional<std::uint64_t> known_of_;  // the connection before gaps_ and marks_ were set
  OpenGaps gaps_;
  MarkNews marks_;
  LossStatement loss_;
  Status refused_;
  std::shared_ptr<ConfigOperation> call_;  // pending, or ended and not processed yet
  bool writing_ = false;
  std::uint64_t losses_written_ = 0;  // as LossStatement::losses()
  bool settled_ = false;              // whether it was written or found to be right since the start
  Clock::time_point now_{};           // of the last tick(), and wall_now_
  Instant wall_now_{};
  Clock::time_point look_at_{};
  Clock::time_point extend_at_{};
  mutable std::mutex trouble_mutex_;
  std::string trouble_;  // guarded by trouble_mutex_
};

}  // namespace fcap::updater
